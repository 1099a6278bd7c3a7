"""What the code never does, whoever asks: the part of the threat model that source and wheel can tell."""

from __future__ import annotations

import argparse
import ast
import hmac
import re
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

import interlingua as il
from interlingua.cli.common.gateway_options import add_options
from interlingua.gateway.http.auth import Authenticator
from interlingua.gateway.http.error_responses import Unauthorized
from interlingua.gateway.settings.schema import Settings
from tests.support.paths import ROOT

SOURCES = sorted((ROOT / "src").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
KEYS = ["the-first-key-0123456789", "the-second-key-0123456789"]


@cache
def nodes() -> list[tuple[Path, ast.AST]]:
    return [(path, node) for path in SOURCES for node in ast.walk(ast.parse(path.read_text("utf-8")))]


def imported() -> Iterator[tuple[str, str]]:
    """Each module that is imported, without what is in it, and the file that does so."""
    for path, node in nodes():
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module)):
                modules = [module]
            case _:
                continue
        yield from ((module.split(".")[0], path.relative_to(ROOT / "src").as_posix()) for module in modules)


# ── the source ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_code_is_made_out_of_text() -> None:
    forbidden = {"eval", "exec", "compile", "__import__", "literal_eval", "system", "popen"}
    found = []
    for path, node in nodes():
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id=name) if name in forbidden:
                found.append((path.name, name))
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if name in forbidden and owner != "re":
                found.append((path.name, f"{owner}.{name}"))
    assert found == []


def test_nothing_is_unpickled() -> None:
    forbidden = {"pickle", "marshal", "shelve", "dill", "pty", "commands", "code", "runpy", "ctypes"}
    assert [(module, file) for module, file in imported() if module in forbidden] == []


RUN = {
    "interlingua/cli/gateway/run.py": "the coding agent that a person has named",
    "interlingua/cli/gateway/daemon/launcher.py": "this Python with `-m interlingua serve`, for `interlingua start`",
    "interlingua/cli/gateway/daemon/process_identity.py": "`ps` with a process number, where there is no /proc",
}
"""Who starts a program, and which. None does so for a request: no part of the gateway or below it is here."""


def test_programs_are_started_for_a_person_alone() -> None:
    assert {file for module, file in imported() if module == "subprocess"} == set(RUN)


def test_no_program_is_started_by_a_shell() -> None:
    calls = [node for path, node in nodes() if isinstance(node, ast.Call) and _owner(node) == "subprocess"]
    assert len(calls) == len(RUN)
    for call in calls:
        assert _called(call) in ("Popen", "run")
        assert {word.arg for word in call.keywords} <= {
            *("env", "stdin", "stdout", "stderr", "start_new_session", "capture_output", "text", "pass_fds")
        }, "neither shell= nor executable=, nor anything that hides them"


def test_no_database_and_no_template_is_in_the_way_of_a_request() -> None:
    """Templates are rendered for `dialects draft` alone: a person's own file, in a sandbox."""
    assert {file for module, file in imported() if module == "jinja2"} == {
        "interlingua/cli/dialects/drafting/template_probe.py"
    }
    template = (ROOT / "src/interlingua/cli/dialects/drafting/template_probe.py").read_text("utf-8")
    assert "ImmutableSandboxedEnvironment(" in template
    assert not re.search(r"\b(Environment|Template)\(", template.replace("ImmutableSandboxedEnvironment", ""))
    assert [file for module, file in imported() if module in ("sqlite3", "sqlalchemy", "redis")] == []


IMPORTED_BY_VALUE = {
    (
        "interlingua/gateway/observability/tracing.py",
        "name",
    ): "a part of OpenTelemetry: one of the constants at the top of the file",
    ("interlingua/client/sdk/factories.py", "package"): "the SDK that a caller asks for: code that has it calls us",
    ("interlingua/client/sdk/factories.py", "name.partition('.')[0]"): "the httpx whose class that SDK's client is",
}
"""Which module, told by whom. Nothing that comes over a wire is among them."""


def test_modules_are_imported_by_names_that_stand_in_the_source() -> None:
    given = [
        (path.relative_to(ROOT / "src").as_posix(), node.args[0])
        for path, node in nodes()
        if isinstance(node, ast.Call) and _called(node) == "import_module"
    ]
    assert given
    others = {(file, ast.unparse(arg)) for file, arg in given if not isinstance(arg, ast.Constant)}
    assert others == set(IMPORTED_BY_VALUE)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _owner(node: ast.Call) -> str:
    """Of what it is called: the module, as in `subprocess.run`."""
    return ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""


def test_yaml_makes_no_objects() -> None:
    """Only what is plain: mappings, lists, texts, numbers."""
    calls = [(path.name, _called(node)) for path, node in nodes() if isinstance(node, ast.Call)]
    assert {name for _, name in calls} & {"unsafe_load", "full_load", "UnsafeLoader", "FullLoader"} == set()
    bases = {ast.unparse(base) for _, node in nodes() if isinstance(node, ast.ClassDef) for base in node.bases}
    assert {base for base in bases if base.endswith("Loader")} <= {"yaml.SafeLoader", "SafeLoader"}


HOSTILE = [r"^(a+)+$", r"(.|.|.|.|.)*!", "(", "a{99999999}", "(?P<x", "[" * 5000]


@pytest.mark.parametrize("dialect", ["standard", "hermes", "qwen3_coder", "kimi_k2", "detect"])
def test_no_pattern_of_a_schema_is_tried(dialect: str) -> None:
    """It is the client's, and a matcher could take for ever, or fail."""
    properties = {
        f"p{n}": {"type": kind, "pattern": pattern, "format": pattern}
        for kind in ("string", "integer")
        for n, pattern in enumerate(HOSTILE)
    }
    schema = {"type": "object", "properties": properties, "patternProperties": {key: {} for key in HOSTILE}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    value = "a" * 60 + "!"
    texts = {
        "qwen3_coder": f"<tool_call>\n<function=f>\n<parameter=p0>\n{value}\n</parameter>\n</function>\n</tool_call>",
        "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
        f'{{"p0": "{value}"}}<|tool_call_end|><|tool_calls_section_end|>',
    }
    text = texts.get(dialect) or f'<tool_call>\n{{"name": "f", "arguments": {{"p0": "{value}"}}}}\n</tool_call>'
    began = time.process_time()
    reply = il.parse(text, dialect, tools=tools)
    for wire in ("openai-chat", "anthropic-messages", "openai-responses"):
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": tools, "max_tokens": 1}
        il.translate_request(body, "openai-chat", wire)
    assert time.process_time() - began < 1
    assert [call.name for call in reply.calls] == ([] if dialect == "standard" else ["f"])


# ── who may ask ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_key_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every known key, whichever fits, and as digests of one length."""
    compared: list[tuple[bytes, bytes]] = []
    compare_digest = hmac.compare_digest

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return compare_digest(a, b)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    gate = Authenticator(Settings(keys=KEYS))
    for shown in (KEYS[0], KEYS[1], "x", KEYS[0][:-1], "é" * 50):
        compared.clear()
        try:
            gate.check_key({"x-api-key": shown})
        except Unauthorized:
            assert shown not in KEYS
        assert len(compared) == len(KEYS)
        assert {len(digest) for pair in compared for digest in pair} == {sha256().digest_size}


@pytest.mark.parametrize(
    "shown",
    [sha256(KEYS[0].encode()).hexdigest(), f"sha256:{sha256(KEYS[0].encode()).hexdigest()}", KEYS[0].upper(), "", " "],
)
def test_nothing_but_a_key_is_a_key(shown: str) -> None:
    """Least of all what is made from one."""
    for headers in ({"x-api-key": shown}, {"authorization": f"Bearer {shown}"}, {"authorization": shown}):
        with pytest.raises(Unauthorized):
            Authenticator(Settings(keys=KEYS)).check_key(headers)


def test_keys_that_begin_alike_are_not_one() -> None:
    """What is compared stands for all of a key."""
    long = "k" * 500
    gate = Authenticator(Settings(keys=[f"{long}a"]))
    gate.check_key({"x-api-key": f"{long}a"})
    for other in (f"{long}b", long, f"{long}a\0", f"{long}aa"):
        with pytest.raises(Unauthorized):
            gate.check_key({"x-api-key": other})


def test_no_option_takes_a_key() -> None:
    """What stands in the arguments of a process, all users of its machine can read. Options name variables."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    options = [name for action in parser._actions for name in action.option_strings]
    assert [name for name in options if re.search("key|token|secret|password", name)] == ["--upstream-key-env"]


# ── what is shipped ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_few_dependencies_at_runtime() -> None:
    assert len(PROJECT["project"]["dependencies"]) <= 6


def test_nothing_runs_when_it_is_installed() -> None:
    """No hook of the build, no `setup.py`, and nothing that Python reads when it starts."""
    assert not any((ROOT / name).exists() for name in ("setup.py", "setup.cfg", "hatch_build.py"))
    assert PROJECT["build-system"]["build-backend"] == "hatchling.build"
    assert [name.partition(">")[0] for name in PROJECT["build-system"]["requires"]] == ["hatchling"]
    build = PROJECT["tool"]["hatch"]["build"]
    assert build.keys() == {"targets"}
    assert all(target.keys() <= {"packages", "include"} for target in build["targets"].values())
    kinds = {path.suffix for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert kinds <= {".py", ".typed"}


def test_the_wheel_has_the_package_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="builds the wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        about = f"interlingua-{PROJECT['project']['version']}.dist-info"
        entries = archive.read(f"{about}/entry_points.txt").decode()
        needed = Parser().parsestr(archive.read(f"{about}/METADATA").decode()).get_all("Requires-Dist") or []
    sources = [f"interlingua/{path.relative_to(ROOT / 'src/interlingua').as_posix()}" for path in SOURCES]
    assert sorted(name for name in names if not name.startswith(about)) == sorted([*sources, "interlingua/py.typed"])
    assert {name.split("/")[0] for name in names} == {"interlingua", about}
    assert {Path(name).suffix for name in names if not name.startswith(about)} <= {".py", ".typed"}
    assert not [name for name in names if name.endswith((".pth", ".so", ".pyc")) or "sitecustomize" in name]
    assert entries.split() == ["[console_scripts]", "interlingua", "=", "interlingua.cli:main"]
    assert len([line for line in needed if "extra ==" not in line]) <= 6


def test_actions_of_others_are_pinned_by_their_hash() -> None:
    for path in (*ROOT.glob(".github/**/*.y*ml"), *ROOT.glob(".gitlab-ci.yml")):
        for used in re.findall(r"uses:\s*(\S+)", path.read_text("utf-8")):
            assert used.startswith("./") or re.fullmatch(r"[^@]+@[0-9a-f]{40}", used), f"{path.name}: {used}"
