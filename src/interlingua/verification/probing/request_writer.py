"""Bodies of requests: a sample with the model and the settings of a run, in the format of the upstream."""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.core.wire_traits import DEFAULT_WIRE
from interlingua.translation.request_translation import prepare_request
from interlingua.upstreams.profile import UNKNOWN_PROFILE, Profile
from interlingua.verification.samples.sample import Sample

__all__ = ["CHAT_WIRE", "RequestSettings", "RequestWriter"]

Json = dict[str, Any]
CHAT_WIRE = DEFAULT_WIRE
"""Wire of the samples."""


class RequestSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings of all requests of a run. None: the field is not sent."""

    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    extra: dict[str, Any] = {}
    """Additional fields of the request body."""


class RequestWriter:
    """Writes samples for one upstream.

    Args:
        wire: Name of the upstream's wire.
        model: The model id.
        profile: The upstream's profile. Built-in samples are adapted to it, as the gateway does it.
        settings: The settings of the run.
    """

    def __init__(
        self, wire: str, model: str, profile: Profile = UNKNOWN_PROFILE, settings: RequestSettings | None = None
    ) -> None:
        self.wire = wire
        self.model = model
        self.profile = profile
        self.settings = settings or RequestSettings()

    def write(self, sample: Sample, *, stream: bool, wire: str | None = None, **changes: Any) -> Json:
        """Return the body of a request.

        Args:
            sample: The sample.
            stream: Whether a stream is requested.
            wire: Another wire than that of the upstream.
            changes: Fields of the chat request that differ from the sample; None removes a field.
        """
        fields: Json = {**sample.request, "model": self.model, "stream": stream}
        if stream:
            fields["stream_options"] = {"include_usage": True}
        settings = self.settings
        for name in ("temperature", "seed", "max_tokens"):
            if (value := getattr(settings, name)) is not None:
                fields[name] = value
        fields = {name: value for name, value in (fields | changes).items() if value is not None}
        wire = wire or self.wire
        if wire == CHAT_WIRE and self.profile is UNKNOWN_PROFILE:
            return fields | settings.extra
        profile = self.profile if wire == self.wire else None
        return prepare_request(fields, CHAT_WIRE, wire, self.model, profile).body | settings.extra
