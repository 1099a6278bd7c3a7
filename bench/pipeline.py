"""Benchmark of the translation of streams, for each pair of wires: µs per event, and ratio to decoding the same JSON.

    python -m bench.pipeline            all pairs, two minutes
    python -m bench.pipeline --quick    a tenth of the events, a quarter of a minute

Only ratios can be compared between machines, so each time is compared with msgspec's decoding of the same events,
measured in the same run and interleaved with it. The streams contain one reply on each wire: thinking, text and two
calls in token-sized deltas. `native` is the same reply as a Kimi model writes it, in the text of chat completions.
The second table has the deltas of each kind alone: µs per delta if each comes in a read of its own, and in reads of
64 KiB, and the share that the fast path forwards unread. Native arguments are text to the upstream.
The last table has the memory of a waiting Translator whose reply has begun, and the time to create one.
"""

from __future__ import annotations

import argparse
import gc
import json
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import msgspec

import interlingua as il
from bench.measure import PROSE, TOKEN, argument, measure_interleaved, repeat_to_size
from interlingua.translation.fast_path import FastPath
from interlingua.wires import WIRES
from interlingua.wires.streaming.sse import EVENT_END, SseDecoder

CHAT = WIRES[0]
READ_BYTES = 64 * 1024
BEGUN = 8
"""Number of events after which a reply has begun on every wire."""
TOOLS = [{"type": "function", "function": {"name": "write", "parameters": {"type": "object"}}}]


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


def deltas(text: str, field: Callable[[str], dict[str, Any]]) -> bytes:
    return b"".join(chunk(field(text[at : at + TOKEN])) for at in range(0, len(text), TOKEN))


def structured(size: int) -> bytes:
    """Return the reply as a stream of chat completions with structured calls."""
    stream = chunk({"role": "assistant", "content": ""})
    stream += deltas(repeat_to_size(PROSE, size), lambda text: {"reasoning_content": text})
    stream += deltas(repeat_to_size(PROSE, size), lambda text: {"content": text})
    for index in range(2):
        function = {"name": "write", "arguments": ""}
        stream += chunk({"tool_calls": [{"index": index, "id": f"c{index}", "type": "function", "function": function}]})
        stream += deltas(argument(size), partial(arguments, index))
    return stream + chunk({}, "tool_calls") + b"data: [DONE]\n\n"


def arguments(index: int, text: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def native(size: int) -> bytes:
    """Return the same reply with the calls as native text."""
    calls = [il.Call(f"functions.write:{n}", "write", argument(size)) for n in range(2)]
    text = repeat_to_size(PROSE, size) + il.render(il.Reply(parts=list(calls)), "kimi_k2")
    stream = chunk({"role": "assistant", "content": ""})
    stream += deltas(repeat_to_size(PROSE, size), lambda text: {"reasoning_content": text})
    stream += deltas(text, lambda text: {"content": text})
    return stream + chunk({}, "stop") + b"data: [DONE]\n\n"


def kinds(size: int) -> dict[str, tuple[bytes, str]]:
    """Return a stream of chat completions with deltas of one kind, and its dialect, by the kind."""
    begin, end = chunk({"role": "assistant", "content": ""}), chunk({}, "stop") + b"data: [DONE]\n\n"
    text, args = repeat_to_size(PROSE, size), argument(size)
    call = il.render(il.Reply(parts=[il.Call("functions.write:0", "write", args)]), "kimi_k2")
    start = {"index": 0, "id": "c0", "type": "function", "function": {"name": "write", "arguments": ""}}
    streams = {
        "text": deltas(text, lambda text: {"content": text}),
        "reasoning": deltas(text, lambda text: {"reasoning_content": text}) + chunk({"content": "Done."}),
        "arguments": chunk({"tool_calls": [start]}) + deltas(args, partial(arguments, 0)),
        "native arguments": deltas(call, lambda text: {"content": text}),
    }
    return {kind: (begin + stream + end, "kimi_k2") for kind, stream in streams.items()}


def translate(messages: list[bytes], source: str, target: str, dialect: str) -> bytes:
    translator = il.Translator(source=source, target=target, dialect=dialect, tools=TOOLS)
    return b"".join([*map(translator.feed, messages), translator.close()])


def forwarded_share(messages: list[bytes], source: str, target: str, dialect: str) -> float:
    """Return the share of the events that the fast path forwards."""
    forward, forwarded = FastPath.forward, 0

    def count_forwarded(fast_path: FastPath, data: bytes) -> tuple[bytes, int]:
        nonlocal forwarded
        sent, size = forward(fast_path, data)
        forwarded += data[:size].count(EVENT_END)
        return sent, size

    with patch.object(FastPath, "forward", count_forwarded):
        translate(messages, source, target, dialect)
    return forwarded / len(messages)


def begin(messages: list[bytes], source: str, target: str, dialect: str) -> il.Translator:
    translator = il.Translator(source=source, target=target, dialect=dialect, tools=TOOLS)
    for message in messages:
        translator.feed(message)
    return translator


def memory(make: Callable[[], object], count: int = 1000) -> float:
    """Return the memory in bytes of one of many objects."""
    kept: list[object] = [make()]
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    kept += (make() for _ in range(count))
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / count


def decode(data: list[str]) -> None:
    for event in data:
        msgspec.json.decode(event)


def print_kinds(size: int) -> None:
    print("\nµs per delta: each in a read of its own, and in reads of 64 KiB; share that is forwarded unread\n")
    print(f"  {'':<18}{'from':<20}" + "".join(f"{f'to {target}':>28}" for target in WIRES))
    for kind, (chat_stream, dialect) in kinds(size).items():
        for source in WIRES:
            stream = chat_stream if source == CHAT else translate([chat_stream], CHAT, source, "standard")
            events = [message.raw for message in SseDecoder().feed(stream)]
            reads = [stream[at : at + READ_BYTES] for at in range(0, len(stream), READ_BYTES)]
            cells = ""
            for target in WIRES:
                runs = [partial(translate, data, source, target, dialect) for data in (events, reads)]
                single, together = (seconds / len(events) * 1e6 for seconds in measure_interleaved(*runs))
                cells += f"{single:12.2f} {together:5.2f} µs {forwarded_share(events, *runs[0].args[1:]):5.0%}"
            print(f"  {kind:<18}{source:<20}{cells}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="a tenth of the events, a few seconds")
    size = 6_000 if options.parse_args().quick else 60_000
    streams = {wire: translate([structured(size)], CHAT, wire, "standard") for wire in WIRES}
    rows = [(source, streams[source], "standard") for source in WIRES] + [("native", native(size), "kimi_k2")]
    print("µs per event of the upstream, and ratio to msgspec's decoding of the same JSON\n")
    print(f"  {'from':<20}" + "".join(f"{f'to {target}':>26}" for target in WIRES))
    for name, stream, dialect in rows:
        messages = SseDecoder().feed(stream)
        raw = [message.raw for message in messages]
        data = [message.data for message in messages if message.data.startswith("{")]
        cells = ""
        for target in WIRES:
            translation = partial(translate, raw, name if name in WIRES else CHAT, target, dialect)
            ours, base = measure_interleaved(translation, partial(decode, data))
            cells += f"{ours / len(raw) * 1e6:14.2f} µs {ours / base:6.1f} ×"
        print(f"  {name:<20}{cells}")
    print_kinds(size)
    print("\nKiB of a Translator that waits after its first events, and µs to create one\n")
    for name, stream, dialect in rows:
        raw = [message.raw for message in SseDecoder().feed(stream)[:BEGUN]]
        cells = ""
        for target in WIRES:
            run = partial(begin, raw, name if name in WIRES else CHAT, target, dialect)
            (made,) = measure_interleaved(partial(begin, [], *run.args[1:]), times=100)
            cells += f"{memory(run) / 1024:14.2f} KiB {made * 1e6:5.1f} µs"
        print(f"  {name:<20}{cells}")


if __name__ == "__main__":
    main()
