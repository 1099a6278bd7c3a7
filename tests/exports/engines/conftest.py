"""Engines as judges. Their environments are created by `make engines`; without them, these tests are skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engines.environments import NotInstalled
from engines.judge import Judge


def start(environment: str, script: str) -> Iterator[Judge]:
    try:
        judge = Judge(environment, script)
    except NotInstalled as error:
        pytest.skip(str(error))
    with judge:
        yield judge


@pytest.fixture(scope="session")
def xgrammar() -> Iterator[Judge]:
    yield from start("xgrammar", "xgrammar_judge.py")


@pytest.fixture(scope="session")
def transformers() -> Iterator[Judge]:
    yield from start("xgrammar", "response_template_judge.py")


@pytest.fixture(scope="session")
def llguidance() -> Iterator[Judge]:
    yield from start("xgrammar", "llguidance_judge.py")


@pytest.fixture(scope="session")
def llama_cpp() -> Iterator[Judge]:
    yield from start("llama-cpp", "llama_cpp_decoder.py")
