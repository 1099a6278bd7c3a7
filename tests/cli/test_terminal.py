"""Terminal manners: lines that fit, whole words, colours where they are wanted, progress, suggestions."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import interlingua as il
from docs.completion import _all_parsers
from interlingua.cli import build_parser, main
from interlingua.cli.common import console, table, terminal
from interlingua.cli.common.command_parser import CommandParser
from interlingua.cli.gateway.serve import startup_message
from interlingua.common.ansi import Style, uses_color
from interlingua.errors import BadSetting, UsageError
from interlingua.gateway.observability.log_format import LogLine, TerminalFormat
from interlingua.gateway.settings.loader import load_settings
from interlingua.gateway.settings.overrides import Flags
from tests.support.paths import DATA, ROOT

ANSI = re.compile(r"\x1b\[[0-9;]*[mK]")


def all_commands() -> Iterator[CommandParser]:
    for parser in _all_parsers(build_parser()):
        assert isinstance(parser, CommandParser)
        yield parser


# ── width ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_command_part(line: str) -> bool:
    """Return whether a line is one word, or an option and its value, quoted or not."""
    return re.fullmatch(r" *(-\S+ )?('[^']*'|\S+)( \\)?", line) is not None


@pytest.mark.parametrize("width", [80, 60])
def test_help_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for parser in all_commands():
        text = parser.format_help()
        words = set(text.split())
        for line in text.splitlines():
            assert len(line) <= width or is_command_part(line), f"{parser.prog}: {line}"
            assert not re.search(r"[a-z]-$", line), f"{parser.prog}: a word is broken: {line}"
        assert not {"--upstream-", "openai-", "anthropic-"} & words


def test_lines_of_descriptions_have_80_columns() -> None:
    """Longer ones would be wrapped on a usual terminal, with single words on lines of their own.

    Lines with columns are wrapped within their last one.
    """
    for parser in all_commands():
        parser.load()
        for text in (parser.description, parser.epilog):
            lines = [line for line in (text or "").splitlines() if not re.match(r"  \S+ {2,}\S", line)]
            assert [line for line in lines if len(line) > 80] == [], parser.prog


def test_help_is_the_same_for_all_widths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the breaks between lines differ."""
    texts = []
    for width in ("50", "80", "100"):
        monkeypatch.setenv("COLUMNS", width)
        texts.append([" ".join(parser.format_help().replace(" \\\n", "\n").split()) for parser in all_commands()])
    assert texts[0] == texts[1] == texts[2]


def test_paragraphs_of_help_are_wrapped_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, long and short lines alternate in a narrow terminal."""
    width = 60
    monkeypatch.setenv("COLUMNS", str(width))
    for parser in all_commands():
        for line, following in pairwise(parser.format_help().splitlines()):
            if line and following and not line.startswith(" ") and not following.startswith(" "):
                first_word = following.split()[0]
                assert len(line) + 1 + len(first_word) > width, f"{parser.prog}: {line}"


def test_wrapped_commands_of_examples_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    parser = CommandParser(
        "x",
        epilog=r"""examples:
  x --upstream http://localhost:8000/v1 --name 'a name' --quiet \
    --key NAME > file
  x --upstream http://localhost:8000/v1       a description of it
  x --short                                   a description of it
  echo '{"calls": [{"id": "", "name": "ls"}]}' | x --model NAME
  x --upstream http://localhost:8000/v1 --name it's --quiet --long""",
    )
    assert parser.format_help().partition("examples:\n")[2] == (
        r"""  x --upstream http://localhost:8000/v1 --name 'a name' \
      --quiet --key NAME > file
  x --upstream http://localhost:8000/v1
      a description of it
  x --short
      a description of it
  echo '{"calls": [{"id": "", "name": "ls"}]}' | x \
      --model NAME
  x --upstream http://localhost:8000/v1 --name it's \
      --quiet --long
"""
    )


def test_entries_of_lists_in_help_are_wrapped_in_their_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = CommandParser(
        "x",
        epilog="exit status:\n"
        "  0  the gateway is running, or is stopping and waits for open streams;\n"
        "     with --url: it accepts requests\n",
    ).format_help()
    assert text.endswith(
        "  0  the gateway is running, or is stopping and waits for\n"
        "     open streams; with --url: it accepts requests\n"
    )


@pytest.mark.parametrize("settings", ["demo: true\n", "demo: true\nkeys: [a-key-of-16-chars]\n"])
def test_startup_message_has_80_columns(tmp_path: Path, settings: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(settings)
    loaded = load_settings(file, {}, Flags())
    heading, *lines = "\n".join(startup_message(loaded.settings, loaded, 8484)).splitlines()
    assert heading.startswith("interlingua: listening on http://127.0.0.1:8484 (process ")
    assert [line for line in lines if len(line) > 80] == []
    assert "models.json" not in "".join(lines), "a file that does not exist"


def run_in_terminal(*args: str, width: int = 80, **environment: str) -> str:
    """Run a command whose output goes to a terminal of this width, and return the output."""
    master, slave = pty.openpty()
    env = {name: text for name, text in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [sys.executable, "-m", "interlingua", *args],
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
        env={**env, "TERM": "xterm", "COLUMNS": str(width), **environment},
    )
    os.close(slave)
    output = b""
    try:
        while data := os.read(master, 65536):
            output += data
    except OSError:  # EIO: the program has ended
        pass
    process.wait(60)
    os.close(master)
    return output.decode().replace("\r\n", "\n")


def output_in_terminal(*args: str, lines: int, width: int) -> str:
    """Start a server in a terminal of this width, read this number of lines, and end it."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "interlingua", *args],
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm", "COLUMNS": str(width)},
    )
    os.close(slave)
    output = b""
    try:
        while output.count(b"\n") < lines:
            output += os.read(master, 65536)
    finally:
        process.terminate()
        process.wait(60)
        os.close(master)
    return output.decode().replace("\r\n", "\n")


def test_commands_to_copy_are_not_broken_in_a_narrow_terminal() -> None:
    """The terminal breaks them where they are shown, and copies them as they are."""
    text = output_in_terminal("serve", "--demo", "--port", "0", lines=45, width=50)
    facts, _, commands = text.partition("Try it in another terminal:")
    assert max(map(len, facts.splitlines())) <= 50
    bodies = [json.loads(body) for body in re.findall(r"-d '(\{.*?\})'", commands, re.S)]
    assert [body["model"] for body in bodies] == ["demo/kimi_k2"] * 3
    assert re.search(r"ANTHROPIC_BASE_URL=http://127\.0\.0\.1:\d+ ANTHROPIC_AUTH_TOKEN=any \\\n", commands)


def test_json_is_one_line_in_a_narrow_terminal() -> None:
    log = output_in_terminal("serve", "--demo", "--port", "0", "--log-format", "json", lines=1, width=50)
    assert json.loads(log.splitlines()[0])["demo"] is True
    stream = str(ROOT / "examples" / "kimi_stream.sse")
    findings = run_in_terminal("translate", "--json", "--model", "moonshotai/kimi-k2.5", stream, width=50)
    assert json.loads(findings.splitlines()[-1])["kind"] == "stop-reason"


def test_errors_are_wrapped_between_words_in_a_terminal() -> None:
    text = ANSI.sub("", run_in_terminal("parse", "--dialect", "kimi", "x", width=60))
    assert text.startswith("error: no dialect is called 'kimi'\nhint: did you mean ")
    text = ANSI.sub("", run_in_terminal("translate", "--dialect", "nothing-like-it", "x", width=60))
    assert max(map(len, text.splitlines())) <= 60
    hint = text[text.index("hint: ") :]
    assert "\n      " in hint, "further lines are indented"
    assert set(hint.replace(",", " ").split()[2:]) >= {dialect.name for dialect in il.dialects() if dialect.shape}


@pytest.mark.parametrize(
    ("width", "headings"),
    [
        (120, "time model calls findings id"),
        (41, "time model calls findings id"),
        (36, "time model findings id"),
        (26, "time model id"),
    ],
)
def test_table_of_a_narrow_terminal_has_fewer_columns(
    monkeypatch: pytest.MonkeyPatch, width: int, headings: str
) -> None:
    monkeypatch.setattr(table, "terminal_width", lambda: width)
    row = ("12:00", "moonshotai/kimi-k2-thinking", "1", "3 error", "req_1")
    text = table.format_table(
        ("time", "model", "calls", "findings", "id"), [row], shortened="model", optional=("calls", "findings")
    )
    first_line, second_line = text.splitlines()
    assert first_line.split() == headings.split()
    assert max(len(first_line), len(second_line)) <= width
    assert second_line.startswith("12:00")
    assert second_line.endswith("req_1")


def test_column_is_shortened_only_as_far_as_the_columns_that_are_left_require(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "terminal_width", lambda: 22)
    row = ("12:00", "demo/kimi_k2", "12345")
    text = table.format_table(("time", "model", "calls"), [row], shortened="model", optional=("calls",))
    assert text == "time   model\n12:00  demo/kimi_k2\n"


RECORDED_LINES = (
    '{"dialect": "kimi_k2", "text": "", "calls": [{"name": "ls", "arguments": {"path": "a folder with a long name"}}]}',
    "no JSON",
)


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize(
    "command",
    [
        ("dialects",),
        ("dialects", "check", "recorded.jsonl"),
        ("faults", "list"),
        ("faults", "engine", "--list"),
        ("cassettes", "show", str(DATA / "cassettes")),
        ("explain", "--severity", "error"),
        ("translate", "--explain", str(ROOT / "examples" / "kimi_stream.sse")),
    ],
    ids=" ".join,
)
def test_tables_fit_the_terminal(
    command: tuple[str, ...], width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("recorded.jsonl").write_text("\n".join(RECORDED_LINES))
    lines = ANSI.sub("", run_in_terminal(*command, width=width)).splitlines()
    assert len(lines) > 3
    assert [line for line in lines if len(line) > width and len(line.split()) > 1] == []


def test_hints_are_wrapped_if_only_the_output_goes_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `interlingua dialects draft x > file`: the terminal is that of standard error."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    monkeypatch.delenv("COLUMNS", raising=False)
    with os.fdopen(slave, "w") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        console.print_stderr("next: test it with real output of the model, see `interlingua dialects check --help`")
        lines = os.read(master, 1000).decode().splitlines()
    os.close(master)
    assert [len(line) <= 50 for line in lines] == [True, True]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("short", ["short"]),
        ("word " * 10 + "end", ["word word word word word word word word", "  word word end"]),
        (
            "  name  a description that is longer than it should be",
            ["  name  a description that is longer", "        than it should be"],
        ),
        (
            "  a name without room for a column  description",
            ["  a name without room for a column", "      description"],
        ),
        ("x" * 50, ["x" * 50]),
    ],
    ids=["short", "words", "column", "no room", "long word"],
)
def test_wrapped_lines_keep_their_layout(line: str, expected: list[str]) -> None:
    assert terminal.wrap_line(line, 40) == expected


def test_log_lines_fit_the_terminal() -> None:
    fields = {"upstream": "primary", "model": "kimi-k2", "reason": "cannot connect to http://127.0.0.1:9/v1: refused"}
    line = LogLine(0.0, "error", "upstream failing", fields)
    plain = TerminalFormat(has_color=False, width=60)(line)
    assert plain == (
        "1970-01-01T00:00:00.000Z upstream failing upstream=primary\n"
        '    model=kimi-k2 reason="cannot connect to\n'
        '    http://127.0.0.1:9/v1: refused"'
    )
    coloured = TerminalFormat(has_color=True, width=60)(line)
    assert ANSI.sub("", coloured) == plain
    assert "\x1b[31mupstream failing" in coloured


def test_lines_of_the_log_fit_the_terminal(tmp_path: Path) -> None:
    """JSON is not wrapped, because it is copied."""
    folder = tmp_path / "interlingua"
    folder.mkdir()
    json_line = '{"message": "request", "error": "' + "x " * 50 + '"}'
    (folder / "default.log").write_text(f"2026-01-01T00:00:00.000Z 502 upstream-failed {'reason ' * 12}\n{json_line}\n")
    text = run_in_terminal("logs", width=60, XDG_STATE_HOME=str(tmp_path))
    *lines, last = text.splitlines()
    assert last == json_line
    assert max(map(len, lines)) <= 60
    assert lines[1].startswith("    reason ")


# ── colours ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("environment", "is_terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, False, True),
    ],
)
def test_when_colours_are_used(environment: dict[str, str], is_terminal: bool, expected: bool) -> None:
    assert uses_color(environment, is_terminal=is_terminal) is expected


def test_colours_of_a_command() -> None:
    error = ("parse", "--dialect", "kimi", "x")
    assert run_in_terminal(*error).startswith("\x1b[31merror:\x1b[0m no dialect")
    assert not ANSI.search(run_in_terminal(*error, NO_COLOR="1"))
    assert "\x1b[1musage\x1b[0m: interlingua explain" in run_in_terminal("explain", "--help")
    piped = subprocess.run(
        [sys.executable, "-m", "interlingua", *error],
        capture_output=True,
        text=True,
        env={**os.environ, "FORCE_COLOR": "1", "NO_COLOR": ""},
    )
    assert piped.stderr.startswith("\x1b[31merror:\x1b[0m no dialect")


# ── progress ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class FakeStream(io.StringIO):
    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def wait_for(stream: FakeStream, text: str) -> None:
    until = time.monotonic() + 20
    while text not in stream.getvalue():
        assert time.monotonic() < until, stream.getvalue()
        time.sleep(0.005)


@pytest.fixture
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PROGRESS_DELAY_SECONDS", "PROGRESS_INTERVAL_SECONDS"):
        monkeypatch.setattr(terminal, name, 0.01)


@pytest.mark.usefixtures("_hurried")
def test_progress_is_shown_if_work_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = FakeStream(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", stream)
    with terminal.progress("asking"):
        wait_for(stream, "asking: ")
    assert re.search(r"^\r\x1b\[Kasking: \d+ s.*\r\x1b\[K$", stream.getvalue(), re.DOTALL)


@pytest.mark.usefixtures("_hurried")
def test_progress_is_not_written_to_files_and_pipes(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = FakeStream(is_terminal=False)
    monkeypatch.setattr(sys, "stderr", stream)
    with terminal.progress("asking"):
        time.sleep(0.05)
    assert stream.getvalue() == ""


def test_no_progress_for_short_work(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = FakeStream(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(ZeroDivisionError), terminal.progress("asking"):
        raise ZeroDivisionError
    assert stream.getvalue() == ""


# ── suggestions ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("args", "error", "hint"),
    [
        (["trnslate"], "command: 'trnslate' is unknown", "did you mean translate? see `interlingua --help`"),
        (["config", "chek"], "command: 'chek' is unknown", "did you mean check? see `interlingua config --help`"),
        (["run", "cluade"], "AGENT: 'cluade' is unknown", "did you mean claude? see `interlingua run --help`"),
        (["xyz"], "command: 'xyz' is unknown", "known: serve, run, "),
        (
            ["translate", "--delivery", "hole"],
            "--delivery: 'hole' is unknown",
            "did you mean whole? see `interlingua translate --help`",
        ),
        (["serve", "--prot", "1"], "unrecognized arguments: --prot 1", "did you mean --port? "),
        (["explain", "--severity", "x"], "--severity: 'x' is unknown", "known: info, warning, error; "),
    ],
)
def test_did_you_mean(capsys: pytest.CaptureFixture[str], args: list[str], error: str, hint: str) -> None:
    assert main(args) == 2
    err = capsys.readouterr().err.splitlines()
    assert err[0] == f"error: {error}"
    assert err[1].startswith(f"hint: {hint}")


# ── the library ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_traceback_shows_the_hint() -> None:
    program = "import interlingua as il; il.parse('x', 'kimi')"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stderr.splitlines()[-1].startswith("hint: did you mean 'kimi_k2' or")
    assert BadSetting(("a",), "wrong").__dict__.get("__notes__") is None, "no note without a hint"
    assert UsageError("wrong", "right").__notes__ == ["hint: right"]


def test_directory_of_the_package_has_public_names_only() -> None:
    assert dir(il) == sorted([*il.__all__, "client", "errors", "events", "trace", "__version__"])
    program = "import interlingua as il; il.parse; il.Translator; print(*dir(il))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.split() == dir(il), "also after names were used"


def test_styles_have_different_codes() -> None:
    assert len({style.value for style in Style}) == len(Style)
