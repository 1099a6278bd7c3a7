"""Draw the diagrams of docs/concepts.md as SVG files: `make docs`. A test checks that they are up to date."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent
WIDTH = 760
LINE_HEIGHT = 17

STYLE = """
    text { font: 14px system-ui, sans-serif; fill: #1f2328; text-anchor: middle; }
    .title { font-weight: 600; }
    .note { font-size: 12px; fill: #57606a; }
    .box { fill: #f6f8fa; stroke: #8c959f; }
    .ours { fill: #ddf4ff; stroke: #0969da; }
    .arrow { stroke: #57606a; stroke-width: 1.5; fill: none; marker-end: url(#tip); }
    .tip { fill: #57606a; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .note { fill: #9da7b3; }
      .box { fill: #21262d; stroke: #6e7681; }
      .ours { fill: #12304d; stroke: #4493f8; }
      .arrow { stroke: #9da7b3; }
      .tip { fill: #9da7b3; }
    }"""


@dataclass(frozen=True)
class Box:
    """Rectangle with a title and lines of notes. `ours`: a part of Interlingua."""

    x: int
    y: int
    width: int
    title: str
    notes: tuple[str, ...] = ()
    ours: bool = False

    @property
    def height(self) -> int:
        return 30 + LINE_HEIGHT * len(self.notes)

    def svg(self) -> str:
        middle = self.x + self.width // 2
        kind = "ours" if self.ours else "box"
        lines = [
            f'  <rect class="{kind}" x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="6"/>'
        ]
        lines.append(f'  <text class="title" x="{middle}" y="{self.y + 20}">{escape(self.title)}</text>')
        for number, note in enumerate(self.notes, 1):
            y = self.y + 20 + LINE_HEIGHT * number
            lines.append(f'  <text class="note" x="{middle}" y="{y}">{escape(note)}</text>')
        return "\n".join(lines)


@dataclass(frozen=True)
class Arrow:
    """Straight arrow with a label beside its middle."""

    start: tuple[int, int]
    end: tuple[int, int]
    label: str = ""

    def svg(self) -> str:
        (x1, y1), (x2, y2) = self.start, self.end
        line = f'  <path class="arrow" d="M{x1} {y1} L{x2} {y2}"/>'
        if not self.label:
            return line
        x, y = (x1 + x2) // 2, (y1 + y2) // 2
        place = f'x="{x}" y="{y - 7}"' if y1 == y2 else f'x="{x + 8}" y="{y + 4}" style="text-anchor: start"'
        return f'{line}\n  <text class="note" {place}>{escape(self.label)}</text>'


@dataclass(frozen=True)
class Diagram:
    """Boxes and arrows, with a description for people who do not see them."""

    description: str
    height: int
    parts: tuple[Box | Arrow, ...]

    def svg(self) -> str:
        parts = "\n".join(part.svg() for part in self.parts)
        return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="img">
  <title>{escape(self.description)}</title>
  <style>{STYLE}
  </style>
  <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
    <path class="tip" d="M0 0 L8 4 L0 8 z"/></marker></defs>
{parts}
</svg>
"""


def overview() -> Diagram:
    """Return the diagram of agents, gateway and upstreams."""
    return Diagram(
        "Agents send requests in their API to Interlingua, which sends them to upstreams in theirs.",
        210,
        (
            Box(10, 20, 200, "Claude Code", ("Anthropic Messages",)),
            Box(10, 82, 200, "opencode, SDKs …", ("OpenAI Chat Completions",)),
            Box(10, 144, 200, "Codex", ("OpenAI Responses",)),
            Box(
                290,
                55,
                180,
                "Interlingua",
                ("requests: translate, adapt", "replies: parse, correct", "findings: report"),
                True,
            ),
            Box(550, 20, 200, "vLLM, llama.cpp …", ("with or without a tool parser",)),
            Box(550, 82, 200, "OpenRouter …", ("text or structured calls",)),
            Box(550, 144, 200, "other servers", ("any of the three APIs",)),
            Arrow((210, 43), (290, 80)),
            Arrow((210, 105), (290, 96)),
            Arrow((210, 167), (290, 118)),
            Arrow((470, 80), (550, 43)),
            Arrow((470, 96), (550, 105)),
            Arrow((470, 118), (550, 167)),
        ),
    )


def reply() -> Diagram:
    """Return the diagram of the path of a streamed reply."""
    return Diagram(
        "The bytes of the upstream become messages, then neutral events, and then the frames of the client's API.",
        330,
        (
            Box(10, 10, 200, "upstream", ("sends bytes, cut anywhere",)),
            Box(280, 10, 200, "SSE decoder", ("bytes → messages",), True),
            Box(550, 10, 200, "reader of the wire", ("messages → events",), True),
            Box(550, 130, 200, "parser", ("text → calls, thinking, text", "by the model's dialect"), True),
            Box(280, 130, 200, "guard", ("order, ids, stop reason,", "limits"), True),
            Box(10, 130, 200, "emitter of the wire", ("events → frames", "of the client's API"), True),
            Box(10, 267, 200, "client", ("receives standard calls",)),
            Box(280, 267, 200, "findings", ("every correction",), True),
            Arrow((210, 33), (280, 33)),
            Arrow((480, 33), (550, 33)),
            Arrow((650, 57), (650, 130), "events"),
            Arrow((550, 162), (480, 162), "events"),
            Arrow((280, 162), (210, 162), "events"),
            Arrow((110, 194), (110, 267), "frames"),
            Arrow((380, 194), (380, 267)),
        ),
    )


def request() -> Diagram:
    """Return the diagram of the path of a request."""
    return Diagram(
        "A client's request is read, its history repaired, adapted to the upstream and written in the upstream's API.",
        225,
        (
            Box(10, 20, 160, "client", ("request in its API",)),
            Box(205, 20, 150, "reader", ("neutral request",), True),
            Box(390, 20, 160, "history repair", ("ids, missing results",), True),
            Box(585, 20, 165, "adaptation", ("profile, dialect",), True),
            Box(585, 150, 165, "writer", ("request in the", "upstream's API"), True),
            Box(310, 150, 190, "upstream", ("receives its own ids and", "its own thinking again")),
            Box(10, 150, 210, "passes unchanged", ("on one wire: all that needs", "no change, byte for byte"), True),
            Arrow((170, 43), (205, 43)),
            Arrow((355, 43), (390, 43)),
            Arrow((550, 43), (585, 43)),
            Arrow((665, 67), (665, 150)),
            Arrow((585, 182), (500, 182)),
            Arrow((90, 67), (90, 150)),
            Arrow((220, 182), (310, 182)),
        ),
    )


DIAGRAMS = {"overview": overview, "reply": reply, "request": request}


def write() -> None:
    for name, draw in DIAGRAMS.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")
