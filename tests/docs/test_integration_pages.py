"""Tests of docs/integrations: a page for each plugin, whose modules and files exist."""

from __future__ import annotations

import importlib.util
import re

import pytest

from engines.releases import RELEASES
from tests.support.paths import ROOT

FOLDER = ROOT / "docs" / "integrations"
PAGES = {
    "vllm": "vllm_plugin",
    "sglang": "sglang_plugin",
    "transformers": "transformers_parser",
    "litellm": "litellm_callback",
    "llama-cpp-python": "llama_cpp_handler",
}


@pytest.mark.parametrize(("page", "module"), PAGES.items())
def test_modules_of_a_page_exist(page: str, module: str) -> None:
    text = (FOLDER / f"{page}.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "interlingua" / "integrations" / f"{module}.py"
    names = re.findall(r"from interlingua\.integrations\.\w+ import (.+)", text)
    for name in (name for line in names for name in line.split(", ")):
        assert re.search(rf"^(class|def) {name}\b", source.read_text(encoding="utf-8"), re.M), name
    for mentioned in set(re.findall(r"interlingua\.integrations\.(\w+)", text)):
        assert importlib.util.find_spec(f"interlingua.integrations.{mentioned}") is not None


@pytest.mark.parametrize("page", PAGES)
def test_python_on_a_page_compiles(page: str) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", (FOLDER / f"{page}.md").read_text(encoding="utf-8"), re.M | re.S):
        compile(block, page, "exec")


def test_tested_releases_are_on_the_pages() -> None:
    vllm = (FOLDER / "vllm.md").read_text(encoding="utf-8")
    assert all(version.rpartition(".")[0] in vllm for version in RELEASES["vllm"])
    assert RELEASES["sglang"][0] in (FOLDER / "sglang.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("version", RELEASES["vllm"])
def test_vllm_table_is_complete(version: str) -> None:
    assert f"## vLLM {version}\n" in (FOLDER / "vllm-parsers.md").read_text(encoding="utf-8")
