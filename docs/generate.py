"""Writes what in docs/reference is made from the code: `make docs`. A test compares."""

from __future__ import annotations

from pathlib import Path

from interlingua.findings import KINDS

REFERENCE = Path(__file__).parent / "reference"


def findings() -> str:
    rows = "\n".join(f"| `{kind}` | {meaning} |" for kind, meaning in KINDS.items())
    return f"""# Findings

What is odd in a reply never raises. It has a defined result, and a finding that says what was seen, where, and what was
done: in `Reply.findings`, in `Translator.findings`, in the `finding:` lines of the command line, in `--explain`.

| kind | what was seen, and what is done about it |
|---|---|
{rows}
"""


PAGES = {"findings.md": findings}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")
