"""Template probe for `dialects draft`: render a chat template with known reasoning, text and calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from typing import Any, NoReturn

from interlingua.common.common_prefix import common_prefix_length
from interlingua.errors import BadInput, UsageError

__all__ = ["CONTENT", "EOS", "THINKING", "TOOLS", "ProbeCall", "ProbeResult", "probe_template"]

QUESTION = "What will the weather be, and which places do you know?"
THINKING = "Both questions need a tool."
CONTENT = "Let me look that up."
EOS = "</s>"
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_forecast", {"town": "Rio Grande", "days": 17, "options": {"unit": "metric"}}),
    ("list_places", {}),
)
PARAM_TYPES = {"town": "string", "days": "integer", "options": "object"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "A probe.",
            "parameters": {
                "type": "object",
                "properties": {key: {"type": PARAM_TYPES[key], "description": "A probe."} for key in args},
                "required": list(args),
            },
        },
    }
    for name, args in CALLS
]
CALL_ID_SETS = (("abcdefgh1", "abcdefgh2"), tuple(f"functions.{name}:{n}" for n, (name, _) in enumerate(CALLS)))
"""Mistral's templates reject ids of any other length. Kimi's render the name only as part of the id."""


@dataclass(frozen=True)
class ProbeCall:
    """A call in the probe message."""

    name: str
    args: dict[str, Any]
    id: str


@dataclass(frozen=True)
class ProbeResult:
    """Rendered texts: the assistant turn, the part of it in the generation prompt, and a turn with text only."""

    turn: str
    generation_prompt: str
    plain_turn: str
    calls: tuple[ProbeCall, ...]
    placeholder: str = ""
    """Text in place of the model's end-of-sequence token, if the template writes one that is not known."""


def probe_template(template: str, eos_token: str = "") -> ProbeResult:
    """Render the template and return the first result that contains all calls.

    Several probes are tried, because some templates reject text next to calls, or more than one call.

    Args:
        template: The chat template, in Jinja.
        eos_token: The model's end-of-sequence token; "" if it is unknown.
    """
    render = _template_renderer(template, eos_token or EOS)
    placeholder = EOS if "eos_token" in template and not eos_token else ""
    user_message = {"role": "user", "content": QUESTION}
    refusal = ""
    for call_count, arguments_as_text, content, ids in product((2, 1), (False, True), (CONTENT, ""), CALL_ID_SETS):
        probes = tuple(ProbeCall(name, args, id) for (name, args), id in zip(CALLS[:call_count], ids, strict=False))
        try:
            before, with_prompt = render([user_message], False), render([user_message], True)
            turn = _suffix_after(
                before, render([user_message, _assistant_message(probes, content, arguments_as_text)], False)
            )
        except _render_errors() as error:
            refusal = refusal or (
                str(error) if isinstance(error, _TemplateRefusal) else f"{type(error).__name__}: {error}"
            )
            continue
        if all(call.name in turn for call in probes):
            plain_turn = _plain_turn(render, user_message, before)
            return ProbeResult(turn, _suffix_after(before, with_prompt), plain_turn, probes, placeholder)
    reason = f": {refusal}" if refusal else "; it may only render the list of tools"
    raise BadInput(
        f"the template renders no calls{reason}",
        "check whether it uses tool_calls; or write the dialect by hand, see `interlingua dialects show kimi_k2`",
    )


def _plain_turn(render: Any, user_message: dict[str, Any], before: str) -> str:
    try:
        return _suffix_after(before, render([user_message, {"role": "assistant", "content": CONTENT}], False))
    except _render_errors():
        return ""


def _assistant_message(calls: tuple[ProbeCall, ...], content: str, arguments_as_text: bool) -> dict[str, Any]:
    """Return the probe message. The reasoning has several names, because templates differ."""
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
                "function": {"name": call.name, "arguments": json.dumps(call.args) if arguments_as_text else call.args},
            }
            for call in calls
        ],
    }


def _suffix_after(before: str, text: str) -> str:
    return text[common_prefix_length(before, text) :]


# ── Jinja, configured as in transformers ──────────────────────────────────────────────────────────────────────────────


def _template_renderer(template: str, eos_token: str) -> Any:
    try:
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise UsageError("this command needs jinja2", "pip install 'interlingua[draft]'") from None
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _generation_tag()]
    )
    environment.filters["tojson"] = _tojson
    environment.globals.update(raise_exception=_raise_refusal, strftime_now=lambda _: "2025-01-01")
    try:
        compiled = environment.from_string(template)
    except jinja2.TemplateSyntaxError as error:
        raise BadInput(
            f"line {error.lineno} of the template is not valid Jinja: {error.message}",
            "pass the model's chat_template.jinja",
        ) from error

    def render(messages: list[dict[str, Any]], add_prompt: bool) -> str:
        return compiled.render(
            messages=messages, tools=TOOLS, add_generation_prompt=add_prompt, bos_token="<s>", eos_token=eos_token
        )

    return render


def _generation_tag() -> Any:
    """Return the extension for `{% generation %}`, which marks what a model writes. It renders only its content."""
    from jinja2.ext import Extension
    from jinja2.nodes import Node
    from jinja2.parser import Parser

    class GenerationTag(Extension):
        tags = {"generation"}  # noqa: RUF012  # as in its base class

        def parse(self, parser: Parser) -> list[Node]:
            next(parser.stream)  # the name of the tag
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    return GenerationTag


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


class _TemplateRefusal(Exception):
    """Raised when the template calls raise_exception."""


def _raise_refusal(message: str) -> NoReturn:
    raise _TemplateRefusal(message)


def _render_errors() -> tuple[type[Exception], ...]:
    """Return what the expressions of a template raise."""
    import jinja2

    errors = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError, RecursionError)
    return (_TemplateRefusal, jinja2.TemplateError, *errors)
