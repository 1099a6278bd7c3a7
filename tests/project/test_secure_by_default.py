"""Tests of the threat model that check the source code and the wheel."""

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

PACKAGE = ROOT / "src" / "interlingua"
SOURCES = sorted(PACKAGE.rglob("*.py"))
DATA_FILES = sorted(
    path
    for folder in (PACKAGE / "cli" / "completion", PACKAGE / "gateway" / "inspector" / "page")
    for path in folder.rglob("*.*")
    if path.suffix in (".bash", ".fish", ".zsh", ".css", ".html", ".js", ".svg")
)
"""Files of the package that are not Python code."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
KEYS = ["the-first-key-0123456789", "the-second-key-0123456789"]


@cache
def nodes() -> list[tuple[Path, ast.AST]]:
    return [(path, node) for path in SOURCES for node in ast.walk(ast.parse(path.read_text("utf-8")))]


def imported() -> Iterator[tuple[str, str]]:
    """Yield each imported top-level package and the file that imports it."""
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


def test_no_text_is_evaluated_as_code() -> None:
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


def test_no_unsafe_deserialization_modules() -> None:
    forbidden = {"pickle", "marshal", "shelve", "dill", "pty", "commands", "code", "runpy"}
    assert [(module, file) for module, file in imported() if module in forbidden] == []


def test_c_functions_are_called_only_for_free_memory() -> None:
    """They set parameters of glibc's memory allocator, with constants, and return memory."""
    files = [file for module, file in imported() if module == "ctypes"]
    assert files == ["interlingua/gateway/processes/free_memory.py"]


RUN = {
    "interlingua/cli/gateway/run.py": "the coding agent that the user named",
    "interlingua/cli/gateway/daemon/launcher.py": "this Python with `-m interlingua serve`, for `interlingua start`",
    "interlingua/cli/gateway/daemon/process_identity.py": "`ps` with a process id, if there is no /proc",
    "interlingua/gateway/processes/inspector_process.py": "this Python with a module of ours, for `serve --inspect`",
}
"""Files that start a program, and which program. None of them handles requests."""


def test_only_commands_of_the_user_start_programs() -> None:
    assert {file for module, file in imported() if module == "subprocess"} == set(RUN)


def test_no_program_is_started_through_a_shell() -> None:
    calls = [node for path, node in nodes() if isinstance(node, ast.Call) and _owner(node) == "subprocess"]
    assert len(calls) == len(RUN)
    for call in calls:
        assert _called(call) in ("Popen", "run")
        assert {word.arg for word in call.keywords} <= {
            *("env", "stdin", "stdout", "stderr", "start_new_session", "capture_output", "text", "pass_fds")
        }, "no shell=, no executable=, no **kwargs"


DATABASE_FILES = ("interlingua/gateway/response_store/database.py",)
ARCHIVE_FILE = "interlingua/gateway/inspector/exchange_archive.py"
SQL_CONSTANTS = {"_CHAIN", "_RESPONSE_COLUMNS", "_SCHEMA", "column", "columns", "placeholders", "table"}
"""Names in SQL statements. All of them stand for fixed text; values are placeholders."""


def test_sql_statements_contain_no_values() -> None:
    assert [file for module, file in imported() if module in ("sqlite3", "psycopg", "sqlalchemy", "redis")] == [
        ARCHIVE_FILE,
        *DATABASE_FILES,
        *DATABASE_FILES,
    ]
    statements = [
        node.args[0]
        for path, node in nodes()
        if path.parent.name in ("response_store", "inspector") and isinstance(node, ast.Call) and node.args
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("execute", "execute_for_each", "executescript")
        if ast.unparse(node.func.value) in ("transaction", "connection", "self._connection")
    ]
    assert len(statements) > 20
    for statement in statements:
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        assert names <= SQL_CONSTANTS | {"sql"}, ast.unparse(statement)


def test_requests_use_no_template() -> None:
    """Only `dialects draft` renders templates: the user's own file, in a sandbox."""
    assert {file for module, file in imported() if module == "jinja2"} == {
        "interlingua/cli/dialects/drafting/template_probe.py"
    }
    template = (ROOT / "src/interlingua/cli/dialects/drafting/template_probe.py").read_text("utf-8")
    assert "ImmutableSandboxedEnvironment(" in template
    assert not re.search(r"\b(Environment|Template)\(", template.replace("ImmutableSandboxedEnvironment", ""))


IMPORTED_BY_VALUE = {
    ("interlingua/__init__.py", "f'{__name__}.{_MODULES[name]}'"): "a table of public names in the same file",
    ("interlingua/__init__.py", "f'{__name__}.{name}'"): "a table of public modules in the same file",
    ("interlingua/client/__init__.py", "f'{__name__}.{_MODULES[name]}'"): "a table of public names in the same file",
    ("interlingua/cassettes/__init__.py", "f'{__name__}.{_MODULES[name]}'"): "a table of public names in the same file",
    ("interlingua/testing/__init__.py", "_MODULES[name]"): "a table of public names in the same file",
    ("interlingua/cli/common/command_parser.py", "self._command_module"): "a table of commands in the parent's module",
    (
        "interlingua/gateway/observability/tracing.py",
        "name",
    ): "a module of OpenTelemetry: one of the constants at the top of the file",
    ("interlingua/client/sdk/factories.py", "package"): "the SDK that the calling program uses",
    ("interlingua/client/sdk/factories.py", "name.partition('.')[0]"): "the httpx package that the SDK uses",
}
"""Imports by a variable name, and where the name comes from. None comes from a request or a reply."""


def test_modules_are_imported_by_constant_names() -> None:
    imports = [
        (path.relative_to(ROOT / "src").as_posix(), node.args[0])
        for path, node in nodes()
        if isinstance(node, ast.Call) and _called(node) == "import_module"
    ]
    assert imports
    others = {(file, ast.unparse(arg)) for file, arg in imports if not isinstance(arg, ast.Constant)}
    assert others == set(IMPORTED_BY_VALUE)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _owner(node: ast.Call) -> str:
    """Return the object before the dot of a call: `subprocess` for `subprocess.run`."""
    return ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""


def test_yaml_creates_no_objects() -> None:
    """YAML loaders create only mappings, lists, strings and numbers."""
    calls = [(path.name, _called(node)) for path, node in nodes() if isinstance(node, ast.Call)]
    assert {name for _, name in calls} & {"unsafe_load", "full_load", "UnsafeLoader", "FullLoader"} == set()
    bases = {ast.unparse(base) for _, node in nodes() if isinstance(node, ast.ClassDef) for base in node.bases}
    assert {base for base in bases if base.endswith("Loader")} <= {"yaml.SafeLoader", "SafeLoader"}


HOSTILE = [r"^(a+)+$", r"(.|.|.|.|.)*!", "(", "a{99999999}", "(?P<x", "[" * 5000]


@pytest.mark.parametrize("dialect", ["standard", "hermes", "qwen3_coder", "kimi_k2", "detect"])
def test_patterns_of_schemas_are_not_matched(dialect: str) -> None:
    """Patterns come from the client; matching them could hang or fail."""
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


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_keys_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is compared with every configured key, as digests of equal length."""
    compared: list[tuple[bytes, bytes]] = []
    compare_digest = hmac.compare_digest

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return compare_digest(a, b)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    gate = Authenticator(Settings(keys=KEYS))
    for key in (KEYS[0], KEYS[1], "x", KEYS[0][:-1], "é" * 50):
        compared.clear()
        try:
            gate.check_key({"x-api-key": key})
        except Unauthorized:
            assert key not in KEYS
        assert len(compared) == len(KEYS)
        assert {len(digest) for pair in compared for digest in pair} == {sha256().digest_size}


@pytest.mark.parametrize(
    "key",
    [sha256(KEYS[0].encode()).hexdigest(), f"sha256:{sha256(KEYS[0].encode()).hexdigest()}", KEYS[0].upper(), "", " "],
)
def test_only_a_key_is_accepted(key: str) -> None:
    """Digests and variants of a key are refused."""
    for headers in ({"x-api-key": key}, {"authorization": f"Bearer {key}"}, {"authorization": key}):
        with pytest.raises(Unauthorized):
            Authenticator(Settings(keys=KEYS)).check_key(headers)


def test_keys_with_a_common_prefix_are_distinct() -> None:
    """The comparison covers the whole key."""
    long = "k" * 500
    gate = Authenticator(Settings(keys=[f"{long}a"]))
    gate.check_key({"x-api-key": f"{long}a"})
    for other in (f"{long}b", long, f"{long}a\0", f"{long}aa"):
        with pytest.raises(Unauthorized):
            gate.check_key({"x-api-key": other})


def test_no_option_takes_a_key() -> None:
    """All users of a machine can read process arguments, so options only name environment variables."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    options = [name for action in parser._actions for name in action.option_strings]
    assert [name for name in options if re.search("key|token|secret|password", name)] == ["--upstream-key-env"]


# ── packaging ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_few_dependencies_at_runtime() -> None:
    assert len(PROJECT["project"]["dependencies"]) <= 6


def test_nothing_runs_at_installation() -> None:
    """No build hook, no `setup.py`, and no file that Python runs at start."""
    assert not any((ROOT / name).exists() for name in ("setup.py", "setup.cfg", "hatch_build.py"))
    assert PROJECT["build-system"]["build-backend"] == "hatchling.build"
    assert [name.partition(">")[0] for name in PROJECT["build-system"]["requires"]] == ["hatchling"]
    build = PROJECT["tool"]["hatch"]["build"]
    assert build.keys() == {"targets"}
    assert all(target.keys() <= {"packages", "include"} for target in build["targets"].values())
    other_files = {path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert other_files == {*DATA_FILES, PACKAGE / "py.typed"}


def test_wheel_contains_only_the_package(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="builds the wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        about = f"interlingua-{PROJECT['project']['version']}.dist-info"
        entries = archive.read(f"{about}/entry_points.txt").decode()
        needed = Parser().parsestr(archive.read(f"{about}/METADATA").decode()).get_all("Requires-Dist") or []
    sources = [f"interlingua/{path.relative_to(PACKAGE).as_posix()}" for path in (*SOURCES, *DATA_FILES)]
    assert sorted(name for name in names if not name.startswith(about)) == sorted([*sources, "interlingua/py.typed"])
    assert {name.split("/")[0] for name in names} == {"interlingua", about}
    assert not [name for name in names if name.endswith((".pth", ".so", ".pyc")) or "sitecustomize" in name]
    assert entries.split("\n\n") == [
        "[console_scripts]\ninterlingua = interlingua.cli:main",
        "[pytest11]\ninterlingua = interlingua.testing.plugin",
        "[sglang.srt.plugins]\ninterlingua = interlingua.integrations.sglang_plugin:register\n",
    ]
    assert len([line for line in needed if "extra ==" not in line]) <= 6


def test_third_party_actions_are_pinned_by_hash() -> None:
    for path in (*ROOT.glob(".github/**/*.y*ml"), *ROOT.glob(".gitlab-ci.yml")):
        for used in re.findall(r"uses:\s*(\S+)", path.read_text("utf-8")):
            assert used.startswith("./") or re.fullmatch(r"[^@]+@[0-9a-f]{40}", used), f"{path.name}: {used}"
