"""What a chat template makes of a turn with thinking, text and calls that we know: the probe of `dialects draft`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from typing import Any, NoReturn

from interlingua.cli.dialects.drafting.template_tokens import common
from interlingua.errors import BadInput, UsageError

__all__ = ["CONTENT", "EOS", "THINKING", "TOOLS", "Probe", "Probed", "probe"]

QUESTION = "What will the weather be, and which places do you know?"
THINKING = "Both questions need a tool."
CONTENT = "Let me look that up."
EOS = "</s>"
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_forecast", {"town": "Rio Grande", "days": 17, "options": {"unit": "metric"}}),
    ("list_places", {}),
)
TYPES = {"town": "string", "days": "integer", "options": "object"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "A probe.",
            "parameters": {
                "type": "object",
                "properties": {key: {"type": TYPES[key], "description": "A probe."} for key in args},
                "required": list(args),
            },
        },
    }
    for name, args in CALLS
]
IDS = (("abcdefgh1", "abcdefgh2"), tuple(f"functions.{name}:{n}" for n, (name, _) in enumerate(CALLS)))
"""Mistral's templates refuse ids of any other length. Kimi's write the id, and the name only as a part of it."""


@dataclass(frozen=True)
class Probe:
    """A call that was put into the template."""

    name: str
    args: dict[str, Any]
    id: str


@dataclass(frozen=True)
class Probed:
    """What came out: the assistant's turn, what the prompt writes of it, and a turn with nothing but text."""

    turn: str
    opening: str
    plain: str
    calls: tuple[Probe, ...]
    writes_eos: bool


def probe(template: str) -> Probed:
    """The first turn that the template writes with all calls in it; some refuse text, or more than one call."""
    if not any(mark in template for mark in ("{{", "{%")):
        raise BadInput(
            "this is no chat template: it has neither {{ nor {% in it", "give the model's chat_template.jinja"
        )
    write = _writer(template)
    user = {"role": "user", "content": QUESTION}
    refused = ""
    for calls, text_args, content, ids in product((2, 1), (False, True), (CONTENT, ""), IDS):
        probes = tuple(Probe(name, args, id) for (name, args), id in zip(CALLS[:calls], ids, strict=False))
        try:
            before, opened = write([user], False), write([user], True)
            turn = _after(before, write([user, _turn(probes, content, text_args)], False))
        except _refusals() as error:
            refused = refused or (str(error) if isinstance(error, _Refused) else f"{type(error).__name__}: {error}")
            continue
        if all(call.name in turn for call in probes):
            plain = _plain(write, user, before)
            return Probed(turn, _after(before, opened), plain, probes, "eos_token" in template)
    why = f": {refused}" if refused else "; it may only know how to offer tools"
    raise BadInput(
        f"the template writes no calls{why}",
        "look for tool_calls in it; a dialect can also be written by hand: `interlingua dialects show kimi_k2`",
    )


def _plain(write: Any, user: dict[str, Any], before: str) -> str:
    try:
        return _after(before, write([user, {"role": "assistant", "content": CONTENT}], False))
    except _refusals():
        return ""


def _turn(calls: tuple[Probe, ...], content: str, text_args: bool) -> dict[str, Any]:
    """A client's message. Thinking goes by several names."""
    return {
        "role": "assistant",
        "content": content,
        "reasoning_content": THINKING,
        "reasoning": THINKING,
        "thinking": THINKING,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.args) if text_args else call.args},
            }
            for call in calls
        ],
    }


def _after(before: str, text: str) -> str:
    return text[common(before, text) :]


# ── jinja, as transformers sets it up ─────────────────────────────────────────────────────────────────────────────────


def _writer(template: str) -> Any:
    try:
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise UsageError("drafting needs jinja2", "pip install 'interlingua[draft]'") from None
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _tojson
    environment.globals.update(raise_exception=_refuse, strftime_now=lambda _: "2025-01-01")
    try:
        compiled = environment.from_string(template)
    except jinja2.TemplateSyntaxError as error:
        raise BadInput(
            f"line {error.lineno} of the template is not Jinja: {error.message}", "is it a model's chat_template.jinja?"
        ) from error

    def write(messages: list[dict[str, Any]], prompt: bool) -> str:
        return compiled.render(
            messages=messages, tools=TOOLS, add_generation_prompt=prompt, bos_token="<s>", eos_token=EOS
        )

    return write


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **more: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **more)


class _Refused(Exception):
    """The template called raise_exception."""


def _refuse(message: str) -> NoReturn:
    raise _Refused(message)


def _refusals() -> tuple[type[Exception], ...]:
    import jinja2

    return (_Refused, jinja2.TemplateError, TypeError, ValueError, LookupError, AttributeError)
