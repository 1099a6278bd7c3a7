"""Former place of `interlingua.translation.request_translation`, kept for one release."""

from interlingua.translation.request_translation import Translation, prepare_request, translate_request

__all__ = ["Translation", "prepare_request", "translate_request"]
