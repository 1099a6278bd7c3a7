"""Demo: translate a Kimi stream, whose calls are text inside the thinking, to standard tool calls.

Run it with `make demo`. `interlingua translate --explain examples/kimi_stream.sse` shows the same without the comments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import interlingua as il
from interlingua.cli.common import console as io
from interlingua.cli.common import terminal
from interlingua.cli.common import two_columns as columns
from interlingua.cli.translate.explain import Explainer
from interlingua.wires.streaming import sse

STREAM = Path(__file__).with_name("kimi_stream.sse")
PIECE = 700  # bytes per read, as a network might cut the stream


def main() -> None:
    layout = columns.ColumnLayout(terminal.terminal_width(), terminal.stdout_styler())
    explainer = Explainer()
    translator = il.Translator("openai-chat", "openai-chat", observer=explainer.observe)
    sent = b""
    show(
        layout.format_note(
            "Kimi K2.5 writes its tool calls as text inside its thinking. The client receives standard frames:"
        )
        + "\n"
    )
    show(layout.format_header("upstream sends", "client receives, and why"))
    for frames in translate(translator):
        for explained in explainer.take_rows():
            show(layout.format_row(explained.row))
        sent += frames
    show(f"\n{layout.format_note(explainer.summary() + '. Result at the client:')}\n")
    show(json.dumps(assemble(sent), indent=2, ensure_ascii=False) + "\n")


def translate(translator: il.Translator) -> Iterator[bytes]:
    raw = STREAM.read_bytes()
    for start in range(0, len(raw), PIECE):
        yield translator.feed(raw[start : start + PIECE])
    yield translator.close()


def show(text: str) -> None:
    io.write(text.encode())


def assemble(sent: bytes) -> dict[str, Any]:
    """Join the frames like a simple client: append the arguments of each index to its call."""
    calls: list[dict[str, Any]] = []
    finish = None
    for message in sse.SseDecoder().feed(sent):
        choices = json.loads(message.data)["choices"] if message.data.startswith("{") else []
        for choice in choices:
            finish = choice["finish_reason"] or finish
            for entry in choice["delta"].get("tool_calls", ()):
                if entry["index"] == len(calls):
                    calls.append({"id": entry["id"], "name": entry["function"]["name"], "arguments": ""})
                calls[entry["index"]]["arguments"] += entry["function"]["arguments"]
    return {
        "finish_reason": finish,
        "tool_calls": [{**call, "arguments": json.loads(call["arguments"])} for call in calls],
    }


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # `make demo | head` closes the pipe
        io.abandon_stdout()
