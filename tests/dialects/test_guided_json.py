"""Calls that a server made the model write as JSON, because a call is required: in every dialect, in all cuts."""

from __future__ import annotations

import itertools
import json
import signal
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlingua as il
from interlingua import events as ev
from interlingua.dialects.registry import get_dialect
from tests.support.budget import sample
from tests.support.growth import check_growth
from tests.support.harness import cut_variants, tool

WEATHER = tool("get_weather", {"city": "string", "days": "integer"})
USERS = tool("create_user", {"name": "string", "input": "string"})
PING = tool("ping", {})
TOOLS = [WEATHER, USERS, PING]
PARIS = ("get_weather", {"city": "Paris"})
NAMES = [*(dialect.name for dialect in il.list_dialects()), "detect"]


class Form(NamedTuple):
    """JSON, the tool choice under which a server writes it, and its calls."""

    text: str
    choice: Any
    calls: list[tuple[str, Any]]


ARRAY = Form('[{"name": "get_weather", "parameters": {"city": "Paris"}}]', "required", [PARIS])
OBJECT = Form('{"name": "get_weather", "arguments": {"city": "Paris"}}', "required", [PARIS])
ARGUMENTS = Form('{"city": "Paris"}', "get_weather", [PARIS])
FORMS = [
    ARRAY,
    OBJECT,
    ARGUMENTS,
    Form(
        '[\n  {"name": "get_weather", "arguments": {"city": "Paris"}},\n  {"name": "ping", "arguments": {}}\n]',
        "required",
        [PARIS, ("ping", {})],
    ),
    Form('{"parameters": {"city": "Paris"}, "name": "get_weather"}', "required", [PARIS]),
    ARRAY._replace(choice="get_weather"),
    OBJECT._replace(choice={"type": "tool", "name": "get_weather"}),
    Form(' {\n "days": 2, "city": "}]"}\n', "get_weather", [("get_weather", {"days": 2, "city": "}]"})]),
    Form('{"name": "Ann", "input": "x"}', "create_user", [("create_user", {"name": "Ann", "input": "x"})]),
    Form('{"input": "x"}', "create_user", [("create_user", {"input": "x"})]),
    Form('{"name": "ping"}', "create_user", [("create_user", {"name": "ping"})]),
    Form('{"anything": [1]}', "ping", [("ping", {"anything": [1]})]),
    Form("{}", "ping", [("ping", {})]),
]


def parse_events(dialect: str, pieces: Iterable[str], choice: Any, tools: Any = TOOLS) -> list[ev.Event]:
    parser = il.Parser(dialect, tools, tool_choice=choice)
    return [event for piece in pieces for event in parser.feed(piece)] + parser.close()


def calls_of(reply: il.Reply) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in reply.calls if call.complete]


def wrappers(name: str) -> list[tuple[str, str]]:
    """Return the pairs of texts that can surround guided JSON: nothing, thinking, markers of sections and calls."""
    dialect = get_dialect(name)
    pairs = [("", "")] + [(f"{span.open}Hm.{span.close}", "") for span in dialect.thinking[:1]]
    if dialect.grammar is None or name == "detect":
        return pairs
    roles, markers = dialect.grammar.marker_roles, [*dialect.grammar.openers, *dialect.grammar.strays]
    written = write_call(dialect)
    openers = [marker for marker in markers if roles.get(marker.strip()) == "opener" and _is_whole_tag(marker)]
    opener = max((marker for marker in openers if written.strip().startswith(marker.strip())), key=len, default="")
    closers = [marker for marker, role in roles.items() if role == "closer" and written.rstrip().endswith(marker)]
    closer = max(closers, key=len, default="")
    return [*pairs, *((before + opener, closer) for before, _ in pairs if opener)]


def write_call(dialect: il.Dialect) -> str:
    """Return a call in the format of the dialect. Some dialects have ids of a certain format, some have none."""
    for id in ("functions.get_weather:0", "abcdefgh1", ""):
        try:
            call = il.Call(id=id, name="get_weather", arguments='{"city": "Paris"}')
            return il.render(il.Reply(parts=[call]), dialect)
        except il.InterlinguaError:
            continue
    raise AssertionError(dialect.name)


def _is_whole_tag(marker: str) -> bool:
    """Return whether JSON can follow the marker: it contains no part of a call."""
    return marker.endswith((">", "]")) or marker.strip().endswith(("json", "call"))


ROWS = [(name, before, after) for name in NAMES for before, after in wrappers(name)]
FORM_IDS = [f"{form.choice}: {form.text!r}" for form in FORMS]


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize(("name", "before", "after"), ROWS)
def test_guided_json_is_a_call(name: str, before: str, after: str) -> None:
    for form in FORMS:
        text = before + form.text + after
        for pieces in ([text], list(text)):
            reply = il.fold(parse_events(name, pieces, form.choice))
            assert (calls_of(reply), reply.text.strip()) == (form.calls, ""), (form, pieces, reply)
            assert reply.reasoning in ("", "Hm."), (form, pieces, reply)
            assert reply.stop_reason == "tool_calls"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "before", "after"), ROWS)
def test_guided_json_in_every_cut(name: str, before: str, after: str) -> None:
    for form in FORMS:
        text = before + form.text + after
        whole = il.fold(parse_events(name, [text], form.choice))
        for cut, pieces in cut_variants(text):
            assert il.fold(parse_events(name, pieces, form.choice)) == whole, (form, cut, pieces)


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize(("name", "before", "after"), ROWS)
def test_guided_json_without_findings(name: str, before: str, after: str) -> None:
    """The form is expected under this tool choice, so it is not a fault."""
    for form in (ARRAY, OBJECT, ARGUMENTS):
        reply = il.fold(parse_events(name, [before + form.text + after], form.choice))
        assert [finding.kind for finding in reply.findings] == [], (form, reply)


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("form", [ARRAY, OBJECT, ARGUMENTS], ids=["array", "object", "arguments"])
@pytest.mark.parametrize(("name", "before"), [(name, before) for name, before, _ in ROWS])
def test_arguments_stream(name: str, before: str, form: Form) -> None:
    """All arguments up to a position are sent before the next text arrives, unless the model's own id may follow."""
    shape: Any = get_dialect(name).shape
    envelope: Any = getattr(shape, "envelope", None) or shape
    if before and form is not ARGUMENTS and getattr(envelope, "id_keys", None):
        pytest.skip("an id may follow the arguments")
    parser = il.Parser(name, TOOLS, tool_choice=form.choice)
    position = form.text.index("Par") + 3
    events = [event for char in before + form.text[:position] for event in parser.feed(char)]
    assert [event.name for event in events if isinstance(event, ev.CallStart)] == ["get_weather"]
    sent = "".join(event.text for event in events if isinstance(event, ev.ArgsDelta))
    assert sent == '{"city": "Par'


@pytest.mark.parametrize("form", [ARRAY, OBJECT, ARGUMENTS], ids=["array", "object", "arguments"])
@pytest.mark.parametrize("name", NAMES)
def test_truncated_guided_json(name: str, form: Form) -> None:
    text = form.text[: form.text.index("Par") + 3]
    reply = il.fold(parse_events(name, list(text), form.choice))
    assert [(call.name, call.arguments, call.complete) for call in reply.calls] == [
        ("get_weather", '{"city": "Par', False)
    ]
    assert reply.stop_reason == "length"


FENCES = ["```json\n", "```\n", "```json "]
BARE_DIALECTS = ("llama3_json", "phi4", "pythonic", "xlam")
"""Dialects that write JSON without markers. A code block around it is part of their notation."""


@pytest.mark.one_row_in(5)
@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES)
def test_guided_json_in_a_code_block_is_a_call(name: str) -> None:
    thinking = get_dialect(name).thinking[:1]
    befores = ["", *(f"{span.open}Hm.{span.close}" for span in thinking)]
    for form, fence, before in sample([*itertools.product(FORMS, FENCES, befores)], 5):
        text = f"{before}{fence}{form.text}\n```"
        for pieces in ([text], list(text)):
            reply = il.fold(parse_events(name, pieces, form.choice))
            assert (calls_of(reply), reply.text.strip()) == (form.calls, ""), (text, pieces, reply)
            assert reply.stop_reason == "tool_calls"
            if name not in BARE_DIALECTS:
                assert [finding.kind for finding in reply.findings] == ["call-in-code"], (text, reply)


@pytest.mark.one_row_in(5)
@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES)
def test_code_block_with_guided_json_in_every_cut(name: str) -> None:
    for form in (ARRAY, ARGUMENTS):
        text = f"```json\n{form.text}\n```\n"
        whole = il.fold(parse_events(name, [text], form.choice))
        assert calls_of(whole) == form.calls
        for cut, pieces in sample([*cut_variants(text)], 9):
            assert il.fold(parse_events(name, pieces, form.choice)) == whole, (form, cut, pieces)


OTHER_CODE_BLOCKS = [
    ("required", '```json\n{"city": "Paris"}\n```'),
    ("required", '```json\n{"answer": 42}\n```'),
    ("required", "```\nls -l\n```"),
    ("get_weather", '```json\n{"town": "Paris"}\n```'),
    ("get_weather", '```json\n{"city": "Paris"}\n```\nThat is an example.'),
    ("get_weather", '```json\n{"city": "Paris"} and so on\n```'),
    ("get_weather", '```json\n{"city": "Paris'),
    ("auto", '```json\n{"city": "Paris"}\n```'),
    ("get_weather", "```"),
    ("get_weather", "```json"),
]


@pytest.mark.one_row_in(11)
@pytest.mark.parametrize(("choice", "text"), OTHER_CODE_BLOCKS)
@pytest.mark.parametrize("name", NAMES)
def test_other_code_block_is_text(name: str, choice: str, text: str) -> None:
    for pieces in ([text], list(text)):
        reply = il.fold(parse_events(name, pieces, choice))
        assert (reply.calls, reply.text) == ([], text), pieces


OTHER_TEXTS = [
    ("required", '{"city": "Paris"}'),
    ("required", '{"answer": 42}'),
    ("required", "[1, 2, 3]"),
    ("required", '[{"name": "unknown", "arguments": {}}]'),
    ("required", "Hello {there}."),
    ("get_weather", '{"town": "Paris"}'),
    ("get_weather", '[{"city": "Paris"}]'),
    ("get_weather", '{"name": "unknown", "arguments": {}}'),
    ("auto", '{"city": "Paris"}'),
    (None, '{"city": "Paris"}'),
]


@pytest.mark.one_row_in(11)
@pytest.mark.parametrize(("choice", "text"), OTHER_TEXTS)
@pytest.mark.parametrize("name", NAMES)
def test_other_json_is_text(name: str, choice: Any, text: str) -> None:
    for pieces in ([text], list(text)):
        reply = il.fold(parse_events(name, pieces, choice))
        assert (reply.calls, reply.text) == ([], text), pieces


def test_empty_object_of_tool_with_required_param_is_text() -> None:
    required = {"name": "get_weather", "parameters": {"properties": {"city": {}}, "required": ["city"]}}
    assert il.parse("{}", "kimi_k2", [required], tool_choice="get_weather").calls == []


@pytest.mark.parametrize("name", NAMES)
def test_choice_none_allows_no_call(name: str) -> None:
    for form in FORMS:
        assert il.parse(form.text, name, TOOLS, tool_choice="none").calls == []
    if get_dialect(name).sample:
        assert il.parse(get_dialect(name).sample, name, TOOLS, tool_choice="none").calls == []


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("choice", ["required", "get_weather"])
@pytest.mark.parametrize("name", NAMES)
def test_native_calls_under_required_choice(name: str, choice: str) -> None:
    """A server without guided decoding leaves the model its own format."""
    sample = get_dialect(name).sample
    for pieces in ([sample], list(sample)):
        expected = il.fold(parse_events(name, pieces, None, None))
        assert il.fold(parse_events(name, pieces, choice, None)) == expected


RM = tool("rm", {"path": "string"})
RM_CALL = '{"name": "rm", "parameters": {"path": "/"}}'
TEXTS_WITH_CALL_STARTS = [
    f"Sure. {RM_CALL}",
    f"Sure. [{RM_CALL}]",
    f"Sure:\n{RM_CALL}",
    f"Sure:\n[{RM_CALL}]",
    f'Sure:\n{{"type": "function", "function": {RM_CALL}}}',
    'Sure. {"name"',
    'Use {"name" here.',
    'Use\n[{"name" here.',
    f'[\n[{{"name"[{RM_CALL}]',
    f'{{"name"{RM_CALL}',
    f'Use {{"name"{{"name"{RM_CALL}',
    f'Use {{"type": "function"{RM_CALL}',
    'Use {"name" {"path": "/"}',
]


@pytest.fixture
def time_limit() -> Iterator[None]:
    """Fail if the test does not end within a minute, so that an endless loop is seen."""

    def fail(*_: object) -> None:
        raise AssertionError("the parser does not return")

    handler = signal.signal(signal.SIGALRM, fail)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, handler)


INLINE_NAMES = ("llama3_json", "phi4", "xlam", "pythonic")


@pytest.mark.sampled
@pytest.mark.usefixtures("time_limit")
@pytest.mark.parametrize("choice", ["required", "rm", "get_weather"])
@pytest.mark.parametrize(
    "name", [name if name in INLINE_NAMES else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_json_behind_text_in_every_cut(name: str, choice: str) -> None:
    """A piece may end right behind the beginning of a call."""
    for text in TEXTS_WITH_CALL_STARTS:
        whole = il.fold(parse_events(name, [text], choice, [RM, WEATHER]))
        for cut, pieces in sample([*cut_variants(text)], 5):
            assert il.fold(parse_events(name, pieces, choice, [RM, WEATHER])) == whole, (text, cut)


@pytest.mark.parametrize("choice", ["required", "rm"])
@pytest.mark.parametrize("name", ["llama3_json", "phi4", "xlam", "pythonic"])
def test_json_behind_the_start_of_a_call_is_text(name: str, choice: str) -> None:
    """Text that only begins like a call is no marker, so the JSON behind it is not at the start of a text."""
    text = 'Use {"name" {"path": "/"}'
    reply = il.parse(text, name, [RM], tool_choice=choice)
    assert (reply.calls, reply.text) == ([], text)


@pytest.mark.parametrize("name", NAMES)
def test_call_of_another_tool_is_reported(name: str) -> None:
    text = RM_CALL.replace("parameters", "arguments")
    for pieces in ([text], list(text)):
        reply = il.fold(parse_events(name, pieces, "get_weather", [RM, WEATHER]))
        assert calls_of(reply) == [("rm", {"path": "/"})]
        assert [finding.kind for finding in reply.findings] == ["other-tool"]
        reply = il.fold(parse_events(name, pieces, "required", [RM, WEATHER]))
        assert reply.findings == []


def test_unknown_tools() -> None:
    for form in (ARRAY, OBJECT, ARGUMENTS):
        assert calls_of(il.parse(form.text, "kimi_k2", None, tool_choice=form.choice)) == form.calls


MESSAGES = [
    ("harmony", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>", "<|return|>"),
    ("harmony", "<|channel|>final<|message|>", ""),
    ("harmony", "<|channel|>analysis<|message|>Hm.<|end|>", ""),
    ("harmony", "<|channel|>commentary<|message|>", "<|call|>"),
    ("muse", " to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>", "<|eot|>"),
    ("muse", " to=user<|message|>", ""),
    ("muse", " to=self<|message|>Hm.<|eom|>", "<|eot|>"),
    ("muse", " to=self<|message|>Hm.<|eom|><|start|>assistant to=get_weather<|message|>", "<|eot|>"),
    ("kimi_k2", "<|tool_calls_section_begin|><|tool_call_begin|>", "<|tool_call_end|><|tool_calls_section_end|>"),
    ("deepseek_v31", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>", "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
]


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize(("name", "before", "after"), MESSAGES)
@pytest.mark.parametrize("form", [ARRAY, OBJECT, ARGUMENTS], ids=["array", "object", "arguments"])
def test_guided_json_in_messages(name: str, before: str, after: str, form: Form) -> None:
    text = before + form.text + after
    for cut, pieces in [("whole", [text]), *cut_variants(text)]:
        reply = il.fold(parse_events(name, pieces, form.choice))
        assert (calls_of(reply), reply.text.strip()) == (form.calls, ""), (cut, pieces, reply)


@pytest.mark.parametrize("name", NAMES)
def test_guided_json_behind_reasoning_channel(name: str) -> None:
    for form in (ARRAY, OBJECT, ARGUMENTS):
        deltas: list[dict[str, Any]] = [{"reasoning_content": "Which {city}? "}, {"content": ""}]
        deltas += [{"content": char} for char in form.text]
        chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        accumulator = il.Accumulator(dialect=name, tools=TOOLS, tool_choice=form.choice)
        for chunk in chunks:
            accumulator.add(chunk)
        reply = accumulator.reply()
        assert (calls_of(reply), reply.text, reply.reasoning.strip()) == (form.calls, "", "Which {city}?"), reply


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)


@given(
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(("city", "days")), json_values, min_size=1),
    st.sampled_from((None, 1, 2)),
    st.data(),
)
def test_any_arguments(name: str, arguments: dict[str, Any], indent: int | None, data: st.DataObject) -> None:
    call = {"name": "get_weather", "parameters": arguments}
    for value, choice in (([call], "required"), (call, "required"), (arguments, "get_weather")):
        text = json.dumps(value, indent=indent, ensure_ascii=False)
        cut = data.draw(st.integers(0, len(text)))
        reply = il.fold(parse_events(name, [text[:cut], text[cut:]], choice))
        assert (calls_of(reply), reply.text) == ([("get_weather", arguments)], ""), text


@pytest.mark.slow
@pytest.mark.parametrize("filler", ["{", "[", '[{"', '{"name"', "<tool_call>", "<|tool_call_begin|>{", "\n "])
@pytest.mark.parametrize("name", ["kimi_k2", "hermes", "qwen3_coder", "pythonic", "standard", "muse", "llama3_json"])
def test_linear_time(name: str, filler: str) -> None:
    def parse(size: int) -> None:
        text = filler * (size // len(filler))
        parse_events(name, (text[n : n + 50] for n in range(0, len(text), 50)), "get_weather")

    check_growth(parse, 20_000, 80_000, limit=10)
