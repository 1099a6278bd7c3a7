"""Former place of `interlingua.translation.request_translation`, kept for one release."""

from interlingua.translation.request_translation import PreparedRequest, prepare_request, translate_request

__all__ = ["PreparedRequest", "Translation", "prepare_request", "translate_request"]

Translation = PreparedRequest
