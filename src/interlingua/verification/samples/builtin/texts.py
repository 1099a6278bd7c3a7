"""Samples on long texts, and on code with quotes, line breaks and the markers of models."""

from __future__ import annotations

from interlingua.verification.samples.builtin.offered_tools import READ_FILE, RUN_COMMAND, WRITE_FILE
from interlingua.verification.samples.builtin.sample_builder import call, calling

__all__ = ["SAMPLES"]

_PARAGRAPH = (
    "The lighthouse at the end of the pier was built from grey stone. Every evening its keeper climbed one hundred "
    "and twelve steps, wound the clockwork, and wrote the weather into a book. On clear nights the light reached the "
    "islands; in fog only the bell did. "
)
_CODE = {
    "hello.py": """\
def greet(name):
    print(f"Hello, {name!r}!")


if __name__ == "__main__":
    greet("World")
""",
    "quotes.js": r"""
const a = "it's";
const b = 'say "hi"';
const c = `${a} \` ${b}`;
""",
    "paths.txt": r"""
C:\new\table\users\n
\\server\share\
""",
    "data.json": r'{"text": "a \"quoted\" word", "list": [1, 2, {"x": null}], "path": "C:\\tmp"}',
    "page.html": """\
<!doctype html>
<p class="a">x &amp; y < z</p>
<script>if (1 < 2 && 3 > 2) alert("</p>")</script>
""",
    "hermes.txt": """\
A call looks like this:
<tool_call>
{"name": "f", "arguments": {"x": 1}}
</tool_call>
It ends here.
""",
    "xml.txt": """\
<function=ls>
<parameter=path>
/tmp
</parameter>
</function>
is how some models write a call.
""",
    "markers.txt": "Only quoted: <|tool_call_begin|>, <|tool_call_end|>, [TOOL_CALLS], <|im_end|> and </think>.\n",
    "deploy.sh": r"""
#!/bin/sh
set -eu
for f in *.txt; do
    sed -e 's/\$HOME/~/g' "$f" | awk '{print $1"\t"$2}'
done
""",
}
_LONG = {
    "story.txt": _PARAGRAPH * 4,
    "numbers.csv": "id,square,cube\n" + "".join(f"{n},{n * n},{n**3}\n" for n in range(1, 61)),
    "list.md": "".join(f"- item {n}: {'word ' * (n % 7 + 1)}end\n" for n in range(1, 41)),
    "line.txt": "x" * 600 + " " + "y" * 600,
}


def _write_prompt(path: str, content: str) -> str:
    """Return a prompt that asks for this file. The content is the text between two lines that it does not contain."""
    return (
        f"Create a file with write_file path='{path}'. Its content is exactly the text between the two lines of equals "
        f"signs, without these lines, and without a code fence around it.\n==========\n{content.strip()}\n=========="
    )


SAMPLES = [
    *(
        calling(
            f"long-strings-{n:02d}",
            _write_prompt(path, content),
            [WRITE_FILE, READ_FILE],
            call("write_file", path=path, content=content),
        )
        for n, (path, content) in enumerate(_LONG.items(), 1)
    ),
    *(
        calling(
            f"code-{n:02d}",
            _write_prompt(path, content),
            [WRITE_FILE, READ_FILE, RUN_COMMAND],
            call("write_file", path=path, content=content),
        )
        for n, (path, content) in enumerate(_CODE.items(), 1)
    ),
]
