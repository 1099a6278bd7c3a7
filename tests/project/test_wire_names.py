"""Files that name a wire: a new wire needs its own folder and three other files, and this number must not grow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

from interlingua.gateway.settings.schema import Api
from interlingua.wires import WIRES, get_wire
from tests.support.paths import ROOT

PACKAGE = ROOT / "src" / "interlingua"
FOLDERS = {wire: str(getattr(get_wire(wire), "__name__", "")).rpartition(".")[2] for wire in WIRES}
"""Folder in `wires/` of each wire."""
NAMES = re.compile(r"(?<![\w-])(" + "|".join([*WIRES, *FOLDERS.values()]) + r")(?![\w-])")

REGISTRATION = {
    "wires/__init__.py": "registry of the wires",
    "core/wire_traits.py": "type of the names; compared with the registry below",
    "../../pyproject.toml": "import-linter: wires do not import each other",
}
"""Files that every new wire has to be added to."""
MAX_REGISTRATION_FILES = 3
SPECIFIC = {
    "agents/claude.py": "the wire that this agent supports",
    "agents/cline.py": "the wires that this agent supports",
    "agents/cn.py": "the wires that this agent supports",
    "agents/codex.py": "the wire that this agent supports",
    "agents/copilot.py": "the wires that this agent supports",
    "agents/kimi.py": "the wires that this agent supports",
    "agents/opencode.py": "the wires that this agent supports",
    "agents/pi.py": "the wires that this agent supports",
    "agents/qwen.py": "the wires that this agent supports",
    "cli/__init__.py": "example in the help text",
    "gateway/settings/schema.py": "default of the setting `count_tokens`",
    "cli/gateway/serve.py": "example in the help text",
    "cli/request.py": "example in the help text",
    "cli/translate/__init__.py": "example in the help text",
    "client/accumulator.py": "example in the docstring",
    "client/tools/toolbox.py": "example in the docstring",
    "core/reasoning_signatures.py": "wire of unsigned thinking, which envelopes at clients contain",
    "gateway/server_tools/request_tools.py": "the wires that have blocks or items for tools that a server runs",
    "testing/cassette_session.py": "the vendors, by their APIs",
    "translation/exchange.py": "example in the docstring",
    "translation/translator.py": "default of public parameters",
    "upstreams/catalog.py": "the wires on which Anthropic and OpenAI sign thinking",
}
"""Files about certain wires, with the reason. A new wire does not change them. Do not add a file to avoid a trait:
code for all wires reads `WireTraits`, `HttpApi`, `ReasoningFields` or `ApiDescription`."""


def source_files() -> Iterator[Path]:
    yield from sorted(PACKAGE.rglob("*.py"))
    yield ROOT / "pyproject.toml"


def relative_name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else f"../../{path.name}"


@cache
def named_wires(path: Path) -> set[str]:
    """Return the wires that the file names, in text or code, by name or by folder."""
    names = {*NAMES.findall(path.read_text("utf-8"))}
    return {wire for wire, folder in FOLDERS.items() if {wire, folder} & names}


def own_wire(path: Path) -> set[str]:
    """Return the wire whose folder contains the file, if any."""
    return {wire for wire, folder in FOLDERS.items() if path.is_relative_to(PACKAGE / "wires" / folder)}


def test_only_listed_files_name_a_wire_other_than_their_own() -> None:
    naming = {relative_name(path) for path in source_files() if named_wires(path) - own_wire(path)}
    assert naming == REGISTRATION.keys() | SPECIFIC.keys()


def test_new_wire_needs_at_most_three_files_outside_its_folder() -> None:
    assert len(REGISTRATION) <= MAX_REGISTRATION_FILES
    named = {relative_name(path): named_wires(path) for path in source_files()}
    assert [name for name in REGISTRATION if named[name] != {*WIRES}] == []


def test_settings_accept_every_wire() -> None:
    assert get_args(Api) == WIRES
