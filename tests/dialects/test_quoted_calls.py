"""Tests of values that quote calls of the same dialect, written as a model writes them: without any escaping."""

from __future__ import annotations

import json
import re
from functools import cache, partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interlingua as il
from interlingua.core.reply import Call, Part, Reply, Text
from interlingua.dialects.quoting import find_unquotable, quoting_samples
from interlingua.dialects.registry import get_dialect
from interlingua.parsing.shapes.tagged_params.grammar import TaggedParams
from tests.support.budget import examples
from tests.support.growth import check_growth

PLACEHOLDERS = ("qzoneqz", "qztwoqz", "qzthreeqz")
TAGGED = [
    dialect.name
    for dialect in il.list_dialects()
    if isinstance(getattr(dialect.shape, "body", None) or dialect.shape, TaggedParams)
]
PARAMS = {"path": {"type": "string"}, "text": {"type": "string"}, "mode": {"type": "string"}}
TOOLS: list[dict[str, Any]] = [
    {"name": name, "parameters": {"type": "object", "properties": PARAMS}} for name in ("write", "look")
]
CARRIED = ("whole calls", "the end of a call")

Arguments = dict[str, str]


def naive_text(name: str, calls: list[tuple[str, Arguments]]) -> str:
    """Write calls as a model does: the values are pasted into the markup."""
    placeholders = iter(f"qz{n}qz" for n in range(100))
    values: dict[str, str] = {}
    parts: list[Part] = []
    for tool, arguments in calls:
        keys = {key: next(placeholders) for key in arguments}
        values |= {keys[key]: value for key, value in arguments.items()}
        parts.append(Call("", tool, json.dumps(keys)))
    text = il.render(Reply(parts=parts), name)
    if get_dialect(name).shape is not None and name == "minicpm5":
        values = {key: f"<![CDATA[{value}]]>" if set("<&\n") & set(value) else value for key, value in values.items()}
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


def read_calls(reply: il.Reply) -> list[tuple[str, Arguments]]:
    return [(call.name, json.loads(call.arguments)) for call in reply.calls if call.complete]


def replies(text: str, name: str, tools: list[dict[str, Any]] = TOOLS) -> list[il.Reply]:
    """Return the reply, read whole, by characters, and in pieces of different lengths."""
    found = [il.parse(text, name, tools)]
    for size in (1, 7, 64):
        parser = il.Parser(name, tools)
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        found.append(il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close()))
    return found


@cache
def fragments(name: str) -> tuple[str, ...]:
    """Return pieces of markup of this dialect: whole calls, heads, tails, closers, openers."""
    dialect = get_dialect(name)
    grammar = dialect.grammar
    assert grammar is not None
    calls = [
        naive_text(name, [("look", {"path": "here"})]),
        naive_text(name, [("write", {"path": "p", "text": "t"}), ("look", {"mode": "m"})]),
        naive_text(name, [("unknown", {"foo": "bar"})]),
    ]
    frame = naive_text(name, [("write", {"path": PLACEHOLDERS[0], "text": PLACEHOLDERS[1]})])
    head, _, rest = frame.partition(PLACEHOLDERS[0])
    between, _, tail = rest.partition(PLACEHOLDERS[1])
    return (
        *calls,
        head,
        between,
        tail,
        *grammar.openers,
        *grammar.inner_markers,
        *dialect.markers,
        "\n",
        " ",
        "a",
        "b\n",
    )


def tagged_shape(name: str) -> TaggedParams:
    shape = getattr(get_dialect(name).shape, "body", None) or get_dialect(name).shape
    assert isinstance(shape, TaggedParams)
    return shape


def normalised(text: str, name: str) -> str:
    """Return the text without what is tolerated: layout, sections, ends of messages, ids, and doubled markers (E38)."""
    shape = tagged_shape(name)
    sections = [marker for span in shape.sections for marker in (span.open, span.close)]
    tolerated = [r"\s+", r"\b(id|index)=\"\d+\"", r"<\|eo[mt]\|>(<\|start\|>assistant)?", *map(re.escape, sections)]
    text = re.sub("|".join(tolerated), "", text)
    for markers in (shape.param.close, shape.call.open, shape.call.close):
        text = re.sub(rf"(?:{'|'.join(map(re.escape, markers))})+", lambda _: markers[0], text)  # noqa: B023
    return text


def is_other_reading(text: str, name: str, calls: list[tuple[str, Arguments]]) -> bool:
    """Return whether the text is also what a model writes for these calls, so that nobody can tell which was meant.

    Each call is in the text as it is written alone, and no closer of a value is outside them. A value that ends with
    its own closer looks like a closer that the model has doubled.
    """
    rest, outside = normalised(text, name), ""
    for call in calls:
        before, found, rest = rest.partition(normalised(naive_text(name, [call]), name))
        if not found:
            return False
        outside += before
    return bool(calls) and not any(closer in outside + rest for closer in tagged_shape(name).param.close)


def check_never_wrong(name: str, wanted: list[tuple[str, Arguments]]) -> None:
    text = naive_text(name, wanted)
    whole, *cut = replies(text, name)
    for reply in cut:
        assert (reply.parts, reply.stop_reason) == (whole.parts, whole.stop_reason)
    found = read_calls(whole)
    if found == wanted and all(call.complete for call in whole.calls):
        assert not whole.text.strip()
    elif all(call.complete for call in whole.calls) and not is_other_reading(text, name, found):
        raise AssertionError(f"wrong complete calls: {found}\ninstead of {wanted}\nin {text!r}")
    elif not all(call.complete for call in whole.calls):
        assert whole.findings


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("name", TAGGED)
@pytest.mark.parametrize("kind", CARRIED)
def test_quoted_call_is_data(name: str, kind: str) -> None:
    sample = quoting_samples(get_dialect(name))[kind]
    for wanted in (
        [("write", {"path": "p", "text": sample})],
        [("write", {"text": sample, "path": "p"})],
        [("write", {"path": sample, "text": sample}), ("look", {"path": "q"})],
        [("look", {"path": "q"}), ("write", {"path": "p", "text": sample})],
    ):
        text = naive_text(name, wanted)
        for reply in replies(text, name):
            assert read_calls(reply) == wanted
            assert not reply.text.strip()
            assert not [finding.kind for finding in reply.findings if finding.kind != "noise"]


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("name", TAGGED)
@pytest.mark.parametrize("kind", ["the beginning of a call", "the end of a param and the beginning of another one"])
def test_ambiguous_quote_is_incomplete(name: str, kind: str) -> None:
    sample = quoting_samples(get_dialect(name))[kind]
    for wanted in ([("write", {"path": "p", "text": sample})], [("write", {"text": sample, "path": "p"})]):
        check_never_wrong(name, wanted)


@pytest.mark.parametrize("name", TAGGED)
def test_text_behind_a_call_is_text(name: str) -> None:
    if get_dialect(name).router is not None:
        pytest.skip("every text is in a message of its own")
    wanted = [("look", {"path": "a"})]
    text = naive_text(name, wanted) + "\nThat was the call."
    for reply in replies(text, name):
        assert read_calls(reply) == wanted
        assert reply.text.strip() == "That was the call."


@pytest.mark.parametrize("name", TAGGED)
def test_text_behind_a_call_that_mentions_its_end_is_ambiguous(name: str) -> None:
    """The text may be the rest of a value that quotes the end of its call twice."""
    if get_dialect(name).router is not None:
        pytest.skip("every text is in a message of its own")
    call = naive_text(name, [("write", {"path": "p", "text": PLACEHOLDERS[0]})])
    tail = call.partition(PLACEHOLDERS[0])[2]
    for reply in replies(f"{call}\nIt ends with `{tail}`, as it must.", name):
        assert [(made.name, made.complete) for made in reply.calls] == [("write", False)]
        assert json.loads(reply.calls[0].arguments) == {"path": "p", "text": PLACEHOLDERS[0]}
        assert "ambiguous-value" in {finding.kind for finding in reply.findings}
        assert "as it must." in reply.text


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("name", TAGGED)
@pytest.mark.parametrize("count", [65, 257, *(pytest.param(count, marks=pytest.mark.slow) for count in (64, 256, 513))])
def test_whitespace_between_markers_is_read_alike_in_every_cut(name: str, count: int) -> None:
    """The limits for whitespace are the same, whether the text arrives whole or in pieces."""
    text = naive_text(name, [("write", {"path": PLACEHOLDERS[0], "text": "b"}), ("look", {"path": "c"})])
    first_value = text.index(PLACEHOLDERS[0])
    for start in [match.start() for match in re.finditer(r"[<\]]", text) if match.start() > first_value]:
        whole, *cut = replies(text[:start] + " " * count + text[start:], name)
        assert all(reply.parts == whole.parts for reply in cut), text[:start]


def test_all_arguments_after_a_param() -> None:
    """An element with all arguments cannot follow a param."""
    sep = "<|sep|>"
    param = f'<|open|>argument key="a" type="number"{sep}1<|close|>argument{sep}'
    json_element = f'<|open|>json{sep}{{"b": 2}}<|close|>json{sep}'
    call = f'<|open|>call tool="add" index="1"{sep}{param}{json_element}<|close|>call{sep}'
    tools = [{"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "number"}}}}]
    reply = il.parse(f"<|open|>tools{sep}{call}<|close|>tools{sep}", "kimi_k3", tools)
    assert [(call.arguments, call.complete) for call in reply.calls] == [('{"a": 1}', False)]
    assert reply.text == '{"b": 2}'


EDIT = {"type": "object", "properties": {"old": {"type": "string"}, "new": {"type": "string"}}}
EDIT_TOOLS: list[dict[str, Any]] = [
    {
        "name": "edit",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "edits": {"type": "array", "items": EDIT}},
        },
    },
    *TOOLS,
]


def edit_call(name: str, fragment: str, *, params_after: bool) -> tuple[str, dict[str, object]]:
    """Return a call with an array of objects whose strings quote a fragment of markup, and its arguments."""
    edits = [{"old": "qz1qz", "new": "qz2qz"}]
    arguments = {"edits": edits, "path": "p"} if params_after else {"path": "p", "edits": edits}
    text = il.render(Reply(parts=[Call("", "edit", json.dumps(arguments))]), name)
    is_json = '"qz1qz"' in text
    written = json.dumps(fragment, ensure_ascii=False)[1:-1] if is_json else fragment
    text = text.replace("qz1qz", "a " + written).replace("qz2qz", written + " b")
    return text, {**arguments, "edits": [{"old": "a " + fragment, "new": fragment + " b"}]}


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("name", TAGGED)
@pytest.mark.parametrize("params_after", [True, False])
def test_markers_in_the_strings_of_a_json_value_are_data(name: str, params_after: bool) -> None:
    """Elements carry strings as raw text, so that a part of a call in them is ambiguous. JSON carries any string."""
    for fragment in fragments(name)[:6]:
        text, arguments = edit_call(name, fragment, params_after=params_after)
        whole, *cut = replies(text, name, EDIT_TOOLS)
        assert all(reply.parts == whole.parts for reply in cut)
        if name in ("cohere_cmd5", "minimax_m3") and not all(call.complete for call in whole.calls):
            assert whole.findings
            continue
        assert [(call.name, json.loads(call.arguments)) for call in whole.calls] == [("edit", arguments)]
        assert not whole.text.strip()


@pytest.mark.parametrize("name", sorted({*TAGGED} - {"cohere_cmd5", "minimax_m3"}))
def test_unclosed_string_in_a_json_value_ends_with_its_call(name: str) -> None:
    text, arguments = edit_call(name, "", params_after=True)
    broken = text.replace('"}]', "")
    assert broken != text
    for reply in replies(broken + text, name, EDIT_TOOLS):
        broken_call, call = reply.calls
        assert call.complete
        assert json.loads(call.arguments) == arguments
        assert json.loads(broken_call.arguments)["path"] == "p"
        assert "bad-value" in {finding.kind for finding in reply.findings}


@pytest.mark.parametrize("name", sorted({*TAGGED} - {"cohere_cmd5", "minimax_m3"}))
@pytest.mark.parametrize("value", ['[{"old": "a\nb"},]', "[{'old': 'a\\nb'}]"])
def test_repair_of_a_json_value_is_reported(name: str, value: str) -> None:
    text, _ = edit_call(name, "", params_after=True)
    start, end = text.index("[{"), text.index("}]") + 2
    for reply in replies(text[:start] + value + text[end:], name, EDIT_TOOLS):
        assert json.loads(reply.calls[0].arguments) == {"edits": [{"old": "a\nb"}], "path": "p"}
        assert "repaired-arguments" in {finding.kind for finding in reply.findings}


@pytest.mark.parametrize("name", TAGGED)
def test_calls_with_text_between_them(name: str) -> None:
    if get_dialect(name).router is not None:
        pytest.skip("every text is in a message of its own")
    call = naive_text(name, [("look", {"path": "a"})])
    for reply in replies(f"{call}\nAnd now:\n{call}\nDone.", name):
        assert read_calls(reply) == [("look", {"path": "a"})] * 2
        assert [part.text.strip() for part in reply.parts if isinstance(part, Text)] == ["And now:", "Done."]


@pytest.mark.one_row_in(5)
@settings(max_examples=examples(200, quick=15))
@pytest.mark.parametrize("name", TAGGED)
@given(data=st.data())
def test_any_markup_in_a_value_is_exact_or_incomplete(name: str, data: st.DataObject) -> None:
    value = st.lists(st.sampled_from(fragments(name)), max_size=6).map("".join)
    wanted = data.draw(
        st.lists(
            st.tuples(st.just("write"), st.fixed_dictionaries({"path": value}, optional={"text": value})),
            min_size=1,
            max_size=2,
        )
    )
    check_never_wrong(name, wanted)


@pytest.mark.one_row_in(5)
@settings(max_examples=examples(200))
@pytest.mark.parametrize("name", TAGGED)
@given(data=st.data())
def test_rendered_markup_round_trips_or_is_refused(name: str, data: st.DataObject) -> None:
    value = data.draw(st.lists(st.sampled_from(fragments(name)), max_size=6).map("".join))
    try:
        text = il.render(Reply(parts=[Call("", "write", json.dumps({"path": "p", "text": value}))]), name)
    except il.InterlinguaError:
        return
    reply = il.parse(text, name, TOOLS)
    assert read_calls(reply) == [("write", {"path": "p", "text": value})]


@pytest.mark.parametrize("name", TAGGED)
def test_reference_names_what_cannot_be_quoted(name: str) -> None:
    assert not set(CARRIED) & set(find_unquotable(get_dialect(name)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["qwen3_coder", "deepseek_v32", "glm47", "kimi_k3", "muse", "cohere_cmd5", "minimax_m3"]
)
@pytest.mark.parametrize("fragment", range(8))
def test_reading_ahead_is_linear(name: str, fragment: int) -> None:
    """Ten times the text takes at most twenty times as long, in large pieces and in small ones."""
    unit = fragments(name)[fragment] + " x\n"
    small, medium, large = (
        naive_text(name, [("write", {"path": "p", "text": unit * (size // len(unit))})])
        for size in (20_000, 200_000, 2_000_000)
    )

    def parse(text: str, piece_length: int = 1 << 20) -> None:
        parser = il.Parser(name, TOOLS)
        for start in range(0, len(text), piece_length):
            parser.feed(text[start : start + piece_length])
        parser.close()

    check_growth(parse, small, medium, limit=20)
    check_growth(parse, medium, large, limit=20)
    check_growth(partial(parse, piece_length=16), small, medium, limit=20)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qwen3_coder", "deepseek_v32", "glm47", "kimi_k3"])
@pytest.mark.parametrize("ending", ["", '"', '",'], ids=["no end", "a quote", "the end of a string"])
@pytest.mark.parametrize("fragment", range(6))
def test_markers_in_json_values_take_linear_time(name: str, ending: str, fragment: int) -> None:
    text, _ = edit_call(name, PLACEHOLDERS[0], params_after=True)
    head, tail = text.split(PLACEHOLDERS[0])[::2]
    unit = json.dumps(fragments(name)[fragment] + " x\n", ensure_ascii=False)[1:-1]

    def parse(size: int, piece_length: int) -> None:
        parser = il.Parser(name, EDIT_TOOLS)
        value = head + unit * (size // len(unit)) + ending + tail
        for start in range(0, len(value), piece_length):
            parser.feed(value[start : start + piece_length])
        parser.close()

    check_growth(partial(parse, piece_length=1 << 20), 20_000, 200_000, limit=20)
    check_growth(partial(parse, piece_length=16), 5_000, 50_000, limit=20)


def test_calls_follow_each_other_without_delay() -> None:
    """The end of a call is known as soon as the next one begins."""
    calls = [("look", {"path": str(n)}) for n in range(3)]
    text = naive_text("qwen3_coder", calls)
    parser = il.Parser("qwen3_coder", TOOLS)
    ends = []
    for n, char in enumerate(text):
        ends += [n for event in parser.feed(char) if isinstance(event, il.events.CallEnd)]
    starts = [text.index(f"\n{n}\n") for n in range(3)]
    assert all(end < start for end, start in zip(ends, starts[1:], strict=False))
    assert all(first < second for first, second in pairwise(ends))
