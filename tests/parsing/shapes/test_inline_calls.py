"""JSON calls right behind a sentence on the same line, in dialects that write calls without markers."""

from __future__ import annotations

import pytest

import interlingua as il
from interlingua.parsing.shapes.json_envelope.grammar import JsonEnvelope
from tests.support.growth import check_growth
from tests.support.harness import cut_variants, tool

TOOLS = [tool("get_weather", ["city"])]
NAMES = [
    dialect.name
    for dialect in il.list_dialects()
    for envelope in [getattr(dialect.shape, "envelope", None) or dialect.shape]
    if isinstance(envelope, JsonEnvelope) and envelope.bare
]
PARIS = '{"name": "get_weather", "parameters": {"city": "Paris"}}'
ROME = '{"name": "get_weather", "parameters": {"city": "Rome"}}'

CALLS = [
    ("Let me check the weather.", PARIS, ["Paris"]),
    ("Let me check the weather. ", PARIS, ["Paris"]),
    ("It is {unclear}: ", PARIS + "\n", ["Paris"]),
    ("", f"So, {{a}} {PARIS}", ["Paris"]),
    ("Both: ", f"[{PARIS}, {ROME}]", ["Paris", "Rome"]),
    ("Both: ", f"{PARIS}{ROME}", ["Paris", "Rome"]),
    ("Both: ", f"{PARIS}; {ROME}", ["Paris", "Rome"]),
    ("Both: ", f"{PARIS}\n{ROME}", ["Paris", "Rome"]),
    ("It is {unclear [1]} and `{`: ", PARIS, ["Paris"]),
    ('It is {"a": "[\\"{"}. ', PARIS, ["Paris"]),
    ("A bracket: {\n\nNow: ", PARIS, ["Paris"]),
    ("Now. ", '{"type": "function", "name": "get_weather", "parameters": {"city": "Paris"}}', ["Paris"]),
]
TEXTS = [
    f"See {PARIS} for an example.",
    f"See `{PARIS}` for an example.",
    f"See {PARIS} {{",
    f"See {PARIS}{ROME} too.",
    f"See [{PARIS}, {ROME}] too.",
    f'See {PARIS} {{"a": 1}}',
    f'The log has {{"result": {PARIS}}}',
    f'The log has {{"result": {PARIS}}}\n',
    f'The log has {{"result":\n{PARIS}}}\n',
    f'So:\n{{"result": [\n{PARIS}\n]}}\n',
    f'The log has {{"result": {PARIS}',
    f'The body was {{"tools": [{PARIS}]}}',
    f'The body was {{"tools": [{PARIS}, {ROME}]}}.',
    f'The body was {{"tools": [{PARIS}, {ROME}]',
    f'The body was:\n{{\n  "tools": [\n    {PARIS}\n  ]\n}}\n',
    f'{{"result": {PARIS}}}',
    f'{{"results": [{PARIS}, {ROME}]}}',
    f'The log has {{"a": "}}", "b": {PARIS}}}',
    f'The log has {{"a": "\\"}}", "b": {PARIS}',
    f'The log has {{"a": "`", "b": {PARIS}}}',
    f'The log has `{{"result": {PARIS}}}`',
    f'The ` log has {{"result": {PARIS}}}',
    f'The log has:\n```json\n{{"result": [\n  {PARIS}]}}\n```',
    f"See {PARIS}}}",
    f"See {PARIS}]",
    f"See {PARIS} }}\n",
    f"See [{PARIS}]]",
    'See {"name": "unknown", "parameters": {"city": "Paris"}}',
    'See {"name": "get_weather"}',
    'See {"name": "get_weather", "city": "Paris"}',
    'See {"name": "get_weather", "parameters": {"city": "Par',
    'See {"name": "get_weather", "parameters": {"city": "Paris"}',
    'See {"name"',
    'See {"name": 1} {"name": "get_weather',
]


def parse_pieces(name: str, pieces: list[str], tools: list[dict[str, object]] | None = TOOLS) -> il.Reply:
    parser = il.Parser(name, tools)
    return il.fold([event for piece in pieces for event in parser.feed(piece)] + parser.close())


def test_dialects() -> None:
    assert set(NAMES) == {"llama3_json", "pythonic", "xlam", "phi4"}


@pytest.mark.parametrize(("before", "text", "cities"), CALLS)
@pytest.mark.parametrize("name", NAMES)
def test_json_behind_a_sentence_is_a_call(name: str, before: str, text: str, cities: list[str]) -> None:
    whole = parse_pieces(name, [before + text])
    assert [call.arguments for call in whole.calls] == [f'{{"city": "{city}"}}' for city in cities]
    assert whole.text.strip() == (before or text.removesuffix(PARIS)).strip()
    assert {finding.kind for finding in whole.findings} == {"no-opener"}
    for cut, pieces in cut_variants(before + text):
        assert parse_pieces(name, pieces) == whole, cut


@pytest.mark.parametrize("name", ["llama3_json", "pythonic"])
def test_end_of_turn_may_follow(name: str) -> None:
    reply = parse_pieces(name, [f"Let me check.{PARIS}<|eot_id|>"])
    assert (reply.text, len(reply.calls)) == ("Let me check.", 1)


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", NAMES)
def test_quoted_json_is_text(name: str, text: str) -> None:
    for _, pieces in [("whole", [text]), *cut_variants(text)]:
        reply = parse_pieces(name, pieces)
        assert (reply.calls, reply.text) == ([], text)


@pytest.mark.parametrize("name", NAMES)
def test_tools_must_be_known(name: str) -> None:
    text = f"Let me check.{PARIS}"
    assert parse_pieces(name, [text], None).text == text


def test_detection_ignores_json_behind_text() -> None:
    text = f"See {PARIS} for an example."
    assert il.parse(text, "detect", TOOLS).text == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "filler", ["{", '{"name"', '{"name": "get_weather", "parameters": {', PARIS + " ", 'x {"name": "get_weather", "']
)
@pytest.mark.parametrize("name", NAMES)
def test_linear_time(name: str, filler: str) -> None:
    def parse(size: int) -> None:
        text = filler * (size // len(filler))
        parse_pieces(name, [text[n : n + 64] for n in range(0, len(text), 64)])

    check_growth(parse, 20_000, 200_000, limit=25)
