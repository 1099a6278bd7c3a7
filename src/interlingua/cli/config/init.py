"""`interlingua config init`: write a commented settings file, from options or from answers on the terminal."""

from __future__ import annotations

import argparse
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from interlingua.cli.common import console
from interlingua.cli.config.settings_template import NewSettings, client_variable, settings_text
from interlingua.cli.gateway.model_choice import list_models
from interlingua.errors import BadInput, UsageError, suggestion_hint
from interlingua.gateway.routing.routes import Routes, find_settings_problems
from interlingua.gateway.settings.checks import find_problems, is_loopback
from interlingua.gateway.settings.loader import SETTINGS_FILE_NAME, raise_settings_errors, read_settings
from interlingua.gateway.settings.schema import Settings, Upstream
from interlingua.wires import WIRES

DESCRIPTION = """\
Writes a settings file with comments. On a terminal, the command asks for what
no option gives: the upstream, the variable with its key, a model, and the names
of clients that get a key. The keys are generated, and written to the file .env
next to the settings, for its owner only."""
EXAMPLE_URL = "http://localhost:8000/v1"
T = TypeVar("T")


class Preset(NamedTuple):
    """Well-known upstream."""

    url: str
    key_variable: str = ""


PRESETS = {
    "vllm": Preset(EXAMPLE_URL),
    "sglang": Preset("http://localhost:30000/v1"),
    "llama.cpp": Preset("http://localhost:8080/v1"),
    "ollama": Preset("http://localhost:11434/v1"),
    "openrouter": Preset("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "moonshot": Preset("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "deepseek": Preset("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "google": Preset("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
}
EPILOG = f"""\
examples:
  interlingua config init
  interlingua config init --upstream {EXAMPLE_URL}
  interlingua config init --upstream openrouter --model moonshotai/kimi-k2.5
  interlingua config init --upstream vllm --host 0.0.0.0 --client alice

names that --upstream takes in place of a URL:
  {", ".join(PRESETS)}
"""
MAX_LISTED_MODELS = 15
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--upstream", metavar="URL", help="URL of the model server or provider, or one of the names below")
    add("--upstream-api", metavar="API", choices=WIRES, help=f"API of the upstream; default: {WIRES[0]}")
    add("--upstream-key-env", metavar="NAME", help="environment variable that holds the upstream's API key")
    add("--model", metavar="ID", help="model id at the upstream; clients can request it by its short name")
    add("--client", metavar="NAME", action="append", help="name of a client that gets a key; may be repeated")
    add("--host", metavar="HOST", help="address to listen on; other addresses than loopback need a --client")
    add("--port", metavar="PORT", help="port to listen on")
    add("-o", "--output", metavar="FILE", default=SETTINGS_FILE_NAME, help=f"default: ./{SETTINGS_FILE_NAME}")
    add("--force", action="store_true", help="replace the file if it exists")


def run(args: argparse.Namespace) -> None:
    path = Path(args.output)
    if path.exists() and not args.force:
        raise BadInput(f"{path} exists already", "--force replaces it, and -o writes another file")
    chosen = _ask_user(args) if _is_terminal() and args.upstream is None else _from_options(args)
    text = settings_text(chosen)
    _check_text(text, chosen)
    _write_private(path, text)
    console.print_stderr(f"wrote {path}")
    if added := _add_keys(path.with_name(".env"), chosen.clients):
        console.print_stderr(f"wrote the keys of clients to {path.with_name('.env')}: {', '.join(added)}")
    if chosen.key_variable and not os.environ.get(chosen.key_variable):
        console.print_note(f"set {chosen.key_variable} in the environment, or in .env, to the upstream's key")
    file = "" if args.output == SETTINGS_FILE_NAME else f" {path}"
    console.print_stderr(f"next: interlingua config check{file}")
    console.print_stderr(f"      interlingua serve{f' --config{file}' if file else ''}")


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _from_options(args: argparse.Namespace) -> NewSettings:
    if args.upstream is None:
        raise UsageError("--upstream is not specified", f"for example: --upstream {EXAMPLE_URL}")
    name, preset = _resolve_upstream(args.upstream)
    return NewSettings(
        name=name,
        url=preset.url,
        api=args.upstream_api or "",
        key_variable=_variable_name(args.upstream_key_env or preset.key_variable),
        model=args.model or "",
        clients=tuple(args.client or ()),
        host=args.host or "",
        port=args.port or "",
    )


def _resolve_upstream(text: str) -> tuple[str, Preset]:
    """Return the name of the upstream, its URL and the usual variable for its key. Raises BadInput."""
    if text in PRESETS:
        return text, PRESETS[text]
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_url = False
    if not is_url:
        raise BadInput(f"{text!r} is not an http or https URL", suggestion_hint(text, PRESETS))
    known = next((name for name, preset in PRESETS.items() if preset.key_variable and preset.url == text), "")
    return known or parts.hostname or "upstream", PRESETS.get(known, Preset(text))


def _variable_name(name: str) -> str:
    if name and not _VARIABLE_NAME.fullmatch(name):
        raise BadInput(f"{name!r} is not the name of a variable", "for example: OPENROUTER_API_KEY")
    return name


# ── questions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ask_user(args: argparse.Namespace) -> NewSettings:
    """Ask for everything that no option gives. An empty answer takes the default."""
    console.print_stderr(f"Where do requests go? A URL, or one of: {', '.join(PRESETS)}")
    name, preset = _ask("upstream", "vllm", _resolve_upstream)
    console.print_stderr("Which environment variable has its API key? Local servers need none.")
    variable = args.upstream_key_env or _ask("variable", preset.key_variable, _variable_name)
    model = args.model if args.model is not None else _ask_model(name, preset.url, args.upstream_api, variable)
    if args.client is not None:
        clients = tuple(args.client)
    else:
        console.print_stderr("Which clients get a key? Names, separated by commas; none: everybody on this machine")
        clients = _ask("clients", "", _read_clients)
    return NewSettings(
        name=name,
        url=preset.url,
        api=args.upstream_api or "",
        key_variable=variable,
        model=model,
        clients=clients,
        host=args.host or "",
        port=args.port or "",
    )


def _ask(label: str, default: str, read: Callable[[str], T]) -> T:
    """Ask until the answer can be used. Raises BadInput at the end of the input."""
    while True:
        console.print_prompt(f"{label} [{default}]: " if default else f"{label}: ")
        line = sys.stdin.readline()
        if not line:
            raise BadInput("the input ended before all questions were answered", "pass options instead, see --help")
        try:
            return read(line.strip() or default)
        except BadInput as error:
            console.print_stderr(f"{error}; {error.hint}" if error.hint else str(error))


def _ask_model(name: str, url: str, api: str | None, variable: str) -> str:
    """Ask for a model, with the upstream's own list if it has one."""
    ids: list[str] = []
    upstream = Upstream(url=url, key=os.environ.get(variable, ""), api=api or WIRES[0])  # type: ignore[arg-type]
    route = Routes(Settings(upstreams={name: upstream})).default
    assert route is not None, "the only upstream is the default"
    try:
        models = list_models(route)
        ids, note = models.ids, models.note
    except BadInput as error:
        note = str(error)
    if note:
        console.print_note(note)
    console.print_stderr("Which model shall have a short name? None: clients send the ids of the upstream.")
    for number, id in enumerate(ids[:MAX_LISTED_MODELS], 1):
        console.print_stderr(f"  {number}  {console.printable(id)}")
    if len(ids) > MAX_LISTED_MODELS:
        console.print_stderr(f"  and {len(ids) - MAX_LISTED_MODELS} more")

    def read_model(answer: str) -> str:
        if not answer.isdigit():
            return answer
        if not 1 <= int(answer) <= len(ids):
            raise BadInput(f"{answer!r} is not in the list", "")
        return ids[int(answer) - 1]

    return _ask("model", "", read_model)


def _read_clients(answer: str) -> tuple[str, ...]:
    clients = tuple(filter(None, (name.strip() for name in answer.split(","))))
    keys = {name: secrets.token_urlsafe(16) for name in clients}
    for problem in find_problems(Settings(upstreams={"any": Upstream(url=EXAMPLE_URL)}, keys=keys)):
        raise BadInput(str(problem).partition(": ")[2], problem.hint)
    return clients


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_text(text: str, chosen: NewSettings) -> None:
    """Raise BadInput if the gateway would refuse the file."""
    if chosen.host and not is_loopback(chosen.host) and not chosen.clients:
        raise UsageError(f"{chosen.host!r} is reachable from other machines, so a key is required", "add --client NAME")
    variables = [chosen.key_variable, *map(client_variable, chosen.clients)]
    environment = {name: f"value-of-the-variable-{name}" for name in variables if name}
    with tempfile.TemporaryDirectory(prefix="interlingua-") as folder:
        path = Path(folder, SETTINGS_FILE_NAME)
        path.write_text(text, encoding="utf-8")
        problems = find_settings_problems(read_settings(path, environment))
    location = re.compile(rf"^{re.escape(str(path))}:\d+: ")
    raise_settings_errors([BadInput(location.sub("", str(problem)), problem.hint) for problem in problems])


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read. An existing file is replaced."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise BadInput(f"cannot write {path}: {error.strerror}", "choose another file with -o") from error


def _add_keys(path: Path, clients: tuple[str, ...]) -> list[str]:
    """Add a generated key for each client that has none to a .env file. Returns the names of the variables."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        text = ""
    present = set(re.findall(r"^\s*(?:export\s+)?(\w+)\s*=", text, re.MULTILINE))
    missing = [name for name in dict.fromkeys(map(client_variable, clients)) if name not in present]
    if missing:
        separator = "" if not text or text.endswith("\n") else "\n"
        lines = (f"{name}={secrets.token_urlsafe(32)}\n" for name in missing)
        _write_private(path, text + separator + "".join(lines))
    return missing
