"""Preflight of a run: upstream, key and model are checked, and settings that the upstream refuses are left out."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from interlingua.common.name_list import join_names
from interlingua.errors import BadInput
from interlingua.verification.probing.request_writer import RequestSettings, RequestWriter
from interlingua.verification.probing.sender import Sender
from interlingua.verification.probing.server_facts import ServerFacts
from interlingua.verification.recording import Recording
from interlingua.verification.reply_reading import ClientReply, describe_unreadable, read_reply
from interlingua.verification.samples.sample import Sample

__all__ = [
    "ADJUSTABLE_SETTINGS",
    "KEY_HINT",
    "URL_HINT",
    "describe_long_wait",
    "explain_model_problem",
    "fit_settings",
    "is_about_key",
    "require_upstream",
]

ADJUSTABLE_SETTINGS = ("temperature", "seed")
"""Settings that are left out if the upstream refuses them, with a note."""
KEY_STATUSES = frozenset({401, 403})
MAX_LISTED_MODELS = 8
KEY_HINT = "put the right key into an environment variable and name it with --key-env, or set `key` in the settings"
URL_HINT = "check the URL; for most servers it ends in /v1"
DOCTOR_HINT = "`interlingua doctor` with the same options shows more"
_KEY_MESSAGE = re.compile(r"api[ _-]?key|unauthori[sz]ed|authentication|invalid token|credentials", re.IGNORECASE)
_MODEL_MESSAGE = re.compile(r"\bmodel\b", re.IGNORECASE)
_HELLO = Sample(id="hello", request={"messages": [{"role": "user", "content": "Say hello."}]})


def is_about_key(recording: Recording) -> bool:
    """Return whether a response refuses the API key."""
    if recording.status in KEY_STATUSES:
        return True
    return recording.status == 400 and _KEY_MESSAGE.search(read_reply(recording).error) is not None


def explain_model_problem(facts: ServerFacts, model: str) -> tuple[str, str] | None:
    """Return the problem with a model id and a hint; None if the upstream has the model, or lists none."""
    if not facts.models or facts.has_model(model) or facts.engine == "llama.cpp":  # which accepts every id
        return None
    if similar := facts.similar_models(model):
        hint = f"did you mean {' or '.join(similar)}?"
    else:
        hint = f"the upstream has {join_names(facts.models, MAX_LISTED_MODELS)}"
    return f"the upstream has no model {model!r}", hint


def require_upstream(facts: ServerFacts, url: str, model: str | None = None) -> None:
    """Check that a run makes sense.

    Args:
        facts: What the server has said about itself.
        url: Address of the upstream.
        model: The model id; None if it is not known yet.

    Raises:
        BadInput: The upstream cannot be reached, refuses the key, or has no such model.
    """
    listing = facts.listing
    if listing.is_unreachable or (listing.status == 0 and listing.error):
        raise BadInput(listing.error or f"{url} cannot be reached", "check the URL, and that the server is running")
    if is_about_key(listing):
        raise BadInput(f"{url} refuses the API key: {read_reply(listing).error}", KEY_HINT)
    if model is not None and (problem := explain_model_problem(facts, model)):
        raise BadInput(*problem)


def describe_long_wait(recording: Recording) -> str:
    """Return for how long an upstream wants no further request."""
    return f"the upstream asks to wait {recording.retry_after or 0.0:,.0f} s"


async def fit_settings(sender: Sender, writer: RequestWriter) -> tuple[RequestSettings, tuple[str, ...]]:
    """Send one request, and leave out the settings that the upstream refuses.

    Returns:
        The settings that it accepts, and a note for each that was left out.

    Raises:
        BadInput: The upstream refuses the request for another reason, or does not answer.
    """
    settings = writer.settings
    notes: list[str] = []
    for _ in range(len(ADJUSTABLE_SETTINGS) + 1):
        fitted = RequestWriter(writer.wire, writer.model, writer.profile, settings)
        recording = await sender.send(fitted.write(_HELLO, stream=False, max_tokens=16), stream=False)
        reply = read_reply(recording)
        if recording.is_success:
            _require_readable(recording, reply)
            return settings, tuple(notes)
        error = reply.error
        refused = next((name for name in ADJUSTABLE_SETTINGS if _is_refused(name, settings, error)), None)
        if refused is None:
            raise _first_request_error(recording, error)
        settings = msgspec.structs.replace(settings, **{refused: None})
        notes.append(f"the upstream refuses `{refused}`, so it is not sent: {error}")
    return settings, tuple(notes)


def _require_readable(recording: Recording, reply: ClientReply) -> None:
    """Raise BadInput if a server answers with something else than a reply."""
    if reply.error:
        raise BadInput(f"a simple request fails: {reply.error}", DOCTOR_HINT)
    if reply.unreadable_events:
        raise BadInput(f"a simple request fails: {describe_unreadable(recording, reply)}", URL_HINT)


def _is_refused(name: str, settings: RequestSettings, error: str) -> bool:
    value: Any = getattr(settings, name)
    return value is not None and name in error.lower()


def _first_request_error(recording: Recording, error: str) -> BadInput:
    if is_about_key(recording):
        return BadInput(f"the upstream refuses the API key: {error}", KEY_HINT)
    status = f" with status {recording.status}" if recording.status else ""
    if _MODEL_MESSAGE.search(error):
        return BadInput(f"a simple request fails{status}: {error}", "check --model")
    if recording.retry_after:
        return BadInput(f"a simple request fails{status}: {error}", describe_long_wait(recording))
    hints = {
        404: "check --model, --api, and the URL, which ends in /v1 for most servers",
        429: "the upstream limits requests: try again later",
    }
    return BadInput(f"a simple request fails{status}: {error}", hints.get(recording.status, DOCTOR_HINT))
