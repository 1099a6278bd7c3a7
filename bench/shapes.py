"""Benchmark of growth in every shape: one big value, a buffered one, many params or calls, prose.

    python -m bench.shapes            full sizes, some minutes
    python -m bench.shapes --quick    a tenth of the sizes

Each text is what the model would write for the same arguments, parsed in deltas and in one piece. The exit code is 1 if
a text is parsed incorrectly, or if ten times the size takes more than thirteen times the time in eight measurements.
`Limits.held` is 64 MiB here: by default a value that is buffered until its end is cut at 1 MiB, which would make the
growth look linear.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import interlingua as il
from bench.measure import ANGLES, CODE, GROWTH, PROSE, TOKEN, measure_interleaved, parse, repeat_to_size
from interlingua.core.reply import Part
from interlingua.core.tools import ToolSet
from interlingua.dialects.registry import get_dialect
from interlingua.parsing.shapes.line_params.grammar import LineParams

DIALECTS = (
    *("kimi_k2", "deepseek_v3", "mistral_v13", "hermes", "llama3_json", "qwen3_coder", "glm47", "deepseek_v4"),
    *("minimax_m3", "kimi_k3", "cohere_cmd5", "gemma4", "pythonic", "lfm2", "harmony", "lines", "detect"),
)
LINES = il.Dialect(
    name="lines",
    summary="Lines: one line per param",
    shape=LineParams(open=("@@call ",), close=("@@end",)),
    special_tokens=False,
)
"""No built-in dialect has the shape `line_params`."""
WRITTEN_AS = {"detect": "hermes"}
"""Dialects that cannot write get another dialect's text. The opener of `hermes` is shared by many dialects."""
OPTIONS = il.Options(limits=il.Limits(held=64 * 1024 * 1024))
PEERS = """\
Published figures of other parsers for one big argument of 20 KB, 200 KB, 2 MB. They were measured elsewhere (Python
3.11, an earlier day), not by this run, so only the growth can be compared:
  SGLang kimi           67 ms      4.7 s    ~330 s     7.0 µs per delta
  SGLang qwen3-coder    66 ms      6.2 s    ~580 s     4.5 µs per delta
  SGLang hermes       15.5 s    ~1000 s                 261 µs per delta
  vLLM kimi           0.23 s       2.5 s      35 s      43 µs per delta
  vLLM hermes         0.49 s      14.5 s    ~430 s      67 µs per delta"""


@dataclass(frozen=True)
class Text:
    """Text to parse, the arguments of its calls (None: no calls, everything is text), and the offered tools."""

    text: str
    args: list[dict[str, Any]] | None
    offer: ToolSet

    def is_parsed_correctly(self, dialect: str) -> bool:
        parser = il.Parser(_find(dialect), self.offer, options=OPTIONS)
        reply = il.fold(parser.feed(self.text) + parser.close())
        if self.args is None:
            return reply.text == self.text and not reply.findings
        read = [json.loads(call.arguments) for call in reply.calls if call.complete and call.name == "write"]
        return read == self.args


def texts(dialect: str, size: int) -> Iterator[tuple[str, Text]]:
    """Return one reply of about this size for each way in which a reply can be big."""
    files = {f"src/{n}.py": CODE for n in range(size // (len(CODE) + 20) + 1)}
    params = {f"p{n}": f"value {n}" for n in range(size // 30 + 1)}
    yield "one string", _call(dialect, {"path": "a.py", "content": repeat_to_size(CODE, size)[:size]}, "string")
    yield "one object", _call(dialect, {"path": "a.py", "content": files}, "object")
    yield "many params", _call(dialect, params, "string")
    yield "many calls", _calls(dialect, [{"path": f"{n}.py"} for n in range(size // 60 + 1)], "string")
    yield "prose with <", Text(repeat_to_size(ANGLES, size), None, ToolSet([_tool(["path"], "string")]))
    yield "mentions", _mentions(dialect, size // 10)


def _call(dialect: str, args: dict[str, Any], kind: str) -> Text:
    return _calls(dialect, [args], kind)


def _calls(dialect: str, each: list[dict[str, Any]], kind: str) -> Text:
    calls: list[Part] = [il.Call("", "write", json.dumps(args)) for args in each]
    written = il.render(il.Reply(parts=calls), _find(WRITTEN_AS.get(dialect, dialect)))
    return Text(written, each, ToolSet([_tool(list(each[0]), kind)]))


def _mentions(dialect: str, size: int) -> Text:
    """Prose that repeatedly mentions the opener of calls. None is a call, but each could become one."""
    grammar = _find(WRITTEN_AS.get(dialect, dialect)).grammar
    opener = grammar.openers[0] if grammar else ""
    return Text(repeat_to_size(f"Write {opener} to begin. ", size), [], ToolSet([_tool(["path"], "string")]))


def _find(dialect: str) -> il.Dialect:
    return LINES if dialect == LINES.name else get_dialect(dialect)


def _tool(params: list[str], kind: str) -> dict[str, Any]:
    properties = {param: {"type": "string" if param == "path" else kind} for param in params}
    return {"name": "write", "input_schema": {"type": "object", "properties": properties}}


# ── growth ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def growth(dialects: Sequence[str], sizes: list[int]) -> bool:
    """Print the table and return whether all results are linear and correct."""
    heads = "".join(f"{size // 1000:>8} KB" for size in sizes) + "    ×10"
    print(f"ms for one reply of each size, and the largest factor for ten times the size (limit: {GROWTH})")
    print(f"{'':<26}{'in deltas of ' + str(TOKEN):<{len(heads)}}  in one piece\n{'':<26}{heads}{heads}")
    good = True
    for dialect in dialects:
        by_name: dict[str, list[Text]] = {}
        for size in sizes:
            for name, text in texts(dialect, size):
                by_name.setdefault(name, []).append(text)
        for name, each in by_name.items():
            right = all(text.is_parsed_correctly(dialect) for text in each)
            columns, linear = zip(
                *(_measure_growth(dialect, each, piece) for piece in (TOKEN, sys.maxsize)), strict=True
            )
            verdict = ("" if all(linear) else "  NOT LINEAR") + ("" if right else "  MISREAD")
            print(f"{dialect:<13}{name:<13}{''.join(columns)}{verdict}", flush=True)
            good &= all(linear) and right
    return good


def _measure_growth(dialect: str, each: list[Text], piece: int) -> tuple[str, bool]:
    runs = [partial(parse, _find(dialect), text.text, piece, text.offer, OPTIONS) for text in each]
    sizes = [len(text.text) for text in each]
    best = [float("inf")] * len(runs)
    worst = float("inf")
    for _ in range(8):  # repeat, because the machine may be busy
        for n, run in enumerate(runs):
            # Measure small sizes as long as big ones: the best of short runs would be too good.
            best[n] = min(best[n], *measure_interleaved(run, times=max(1, sizes[-1] // sizes[n]), rounds=1))
        worst = max(10 * (b / a) / (n / m) for a, b, m, n in zip(best, best[1:], sizes, sizes[1:], strict=False))
        if worst < GROWTH:
            break
    return "".join(f"{seconds * 1e3:11.1f}" for seconds in best) + f"{worst:7.1f}", worst < GROWTH


# ── ordinary text ───────────────────────────────────────────────────────────────────────────────────────────────────


def per_delta(size: int) -> None:
    """Print the cost of a delta of prose in each dialect, compared with the minimum: one scan of the text."""
    plain, angles = repeat_to_size(PROSE, size), repeat_to_size(ANGLES, size)
    print(f"\nµs for a delta of {TOKEN} characters of prose, of prose full of <, and ratio of each to one scan for '<'")
    for dialect in [dialect.name for dialect in il.dialects()] + ["detect"]:
        columns = ""
        for text in (plain, angles):
            ours, scan = measure_interleaved(partial(parse, dialect, text, TOKEN), partial(_scan, text), rounds=3)
            columns += f"{ours / len(text) * TOKEN * 1e6:9.2f}{ours / scan:7.1f} ×"
        print(f"  {dialect:<18}{columns}", flush=True)


def _scan(text: str) -> None:
    for at in range(0, len(text), TOKEN):
        text[at : at + TOKEN].find("<")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    options.add_argument("dialects", nargs="*", help="only these dialects, without the table of prose")
    chosen = options.parse_args()
    sizes = [2_000, 20_000, 200_000] if chosen.quick else [20_000, 200_000, 2_000_000]
    good = growth(chosen.dialects or DIALECTS, sizes)
    if not chosen.dialects:
        per_delta(60_000 if chosen.quick else 300_000)
    print(f"\n{PEERS}\n\n{'linear' if good else 'NOT LINEAR or MISREAD: see above'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
