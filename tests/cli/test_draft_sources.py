"""Sources of `dialects draft`: templates in every file that models come with, and recorded replies of any form."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import interlingua as il
from interlingua.cli import main
from interlingua.cli.dialects.drafting.draft_source import RecordedReply
from interlingua.cli.dialects.drafting.recording_guesser import find_calls
from tests.support.budget import sample
from tests.support.paths import DATA, ROOT

HERMES = (DATA / "fixtures" / "templates" / "hermes.jinja").read_text("utf-8")
MISTRAL = (DATA / "fixtures" / "templates" / "mistral.jinja").read_text("utf-8")
ACME = (
    '<think>Two cities.</think>Let me look.<|call|>get_weather<|with|>{"city": "Paris"}<|done|>'
    '<|call|>get_weather<|with|>{"city": "Rome"}<|done|><|stop|>'
)
ELEMENTS = (
    '<do>\n<act name="write">\n<arg name="path">a.py</arg>\n<arg name="mode">420</arg>\n</act>\n'
    '<act name="write">\n<arg name="path">b.py</arg>\n<arg name="mode">420</arg>\n</act>\n</do>'
)
CACHED = "models--acme--Acme-7B/snapshots/0123abc"
CHAT_CHUNK: dict[str, Any] = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ACME}}]}
SSE = f"data: {json.dumps(CHAT_CHUNK)}\n\ndata: [DONE]\n\n"
WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": ACME}, "finish_reason": "stop"}]}

TEMPLATES: dict[str, tuple[dict[str, str], str, str, str]] = {
    # files; the argument; what it took; name of the dialect
    "tokenizer": (
        {"Acme/tokenizer_config.json": json.dumps({"chat_template": HERMES})},
        "Acme/tokenizer_config.json",
        "took the chat template in Acme/tokenizer_config.json",
        "acme",
    ),
    "tokenizer with several": (
        {
            "tokenizer_config.json": json.dumps(
                {
                    "chat_template": [
                        {"name": "default", "template": "{{ messages }}"},
                        {"name": "tool_use", "template": HERMES},
                    ]
                }
            )
        },
        "tokenizer_config.json",
        "took the chat template 'tool_use' in tokenizer_config.json",
        "my_model",
    ),
    "tokenizer without, next to the template": (
        {"tokenizer_config.json": '{"model_max_length": 4096}', "chat_template.jinja": HERMES},
        "tokenizer_config.json",
        "took the chat template chat_template.jinja, because tokenizer_config.json has none",
        "my_model",
    ),
    "folder": (
        {
            "Acme-7B/chat_template.jinja": HERMES,
            "Acme-7B/tokenizer_config.json": json.dumps({"chat_template": "{{ no }}"}),
        },
        "Acme-7B",
        "took the chat template in Acme-7B/chat_template.jinja",
        "acme_7b",
    ),
    "folder with a template for tools": (
        {"m/chat_template.jinja": "{{ no }}", "m/additional_chat_templates/tool_use.jinja": HERMES},
        "m",
        "took the chat template in m/additional_chat_templates/tool_use.jinja",
        "m",
    ),
    "folder in the cache": (
        {f"{CACHED}/tokenizer_config.json": json.dumps({"chat_template": HERMES})},
        CACHED,
        f"took the chat template in {CACHED}/tokenizer_config.json",
        "acme_7b",
    ),
    "processor": (
        {"chat_template.json": json.dumps({"chat_template": HERMES})},
        "chat_template.json",
        "took the chat template in chat_template.json",
        "my_model",
    ),
    "llama.cpp": (
        {"props": json.dumps({"default_generation_settings": {}, "chat_template": HERMES})},
        "props",
        "took the chat template in props",
        "my_model",
    ),
}


@pytest.mark.parametrize(("files", "argument", "taken", "name"), TEMPLATES.values(), ids=TEMPLATES)
def test_template_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    files: dict[str, str],
    argument: str,
    taken: str,
    name: str,
) -> None:
    folder = tmp_path / "my model"
    monkeypatch.chdir(write_files(folder, files))
    assert main(["dialects", "draft", argument]) == 0
    out, err = capsys.readouterr()
    assert err.splitlines()[:2] == [taken, "the draft parses what the template renders: 2 of 2 calls"]
    dialect = il.load_dialect(out)
    assert (dialect.name, dialect.noise) == (name, ("<|im_end|>",))


def write_files(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize("token", ["<|end|>", {"content": "<|end|>", "special": True}], ids=["text", "object"])
def test_end_token_of_the_tokenizer_takes_the_place_of_the_placeholder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], token: Any
) -> None:
    files = {"chat_template.jinja": MISTRAL, "tokenizer_config.json": json.dumps({"eos_token": token})}
    assert main(["dialects", "draft", str(write_files(tmp_path, files) / "chat_template.jinja")]) == 0
    draft = capsys.readouterr().out
    assert il.load_dialect(draft).noise == ("<|end|>",)
    assert "is a placeholder" not in draft


ROW = {"text": ACME, "calls": [{"name": "get_weather", "arguments": {"city": city}} for city in ("Paris", "Rome")]}
ROWS = "\n".join(json.dumps(row) for row in (ROW, {"text": "No.", "calls": []}))
RECORDINGS = {
    "text": ("reply.txt", ACME, "took the text of one reply in reply.txt"),
    "stream": ("recorded.sse", SSE, "took the text of the stream in recorded.sse (openai-chat)"),
    "whole reply": ("whole.json", json.dumps(WHOLE), "took the text of the reply in whole.json (openai-chat)"),
    "row": ("one.json", json.dumps(ROW), "took one recorded reply in one.json"),
    "rows": ("rows.jsonl", ROWS, "took 2 recorded replies in rows.jsonl"),
}


@pytest.mark.parametrize(("file", "text", "taken"), RECORDINGS.values(), ids=RECORDINGS)
def test_recording_is_drafted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file: str,
    text: str,
    taken: str,
) -> None:
    monkeypatch.chdir(write_files(tmp_path, {file: text}))
    assert main(["dialects", "draft", file]) == 0
    out, err = capsys.readouterr()
    assert err.splitlines()[:2] == [taken, "the draft parses the recording: 2 of 2 calls"]
    dialect = il.load_dialect(out)
    reply = il.parse(ACME, dialect)
    assert [(call.name, call.arguments) for call in reply.calls] == [
        ("get_weather", '{"city": "Paris"}'),
        ("get_weather", '{"city": "Rome"}'),
    ]
    assert (reply.text, reply.reasoning) == ("Let me look.", "Two cities.")


def test_capture_is_drafted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exchange = {"upstream_wire": "openai-chat", "wire": "openai-chat", "status": 200, "outcome": "ok"}
    lines: list[dict[str, Any]] = [
        {"kind": "request", "at": 0, "id": "r", "time": "", "path": "/", "wire": "openai-chat", "headers": {}},
        {"kind": "received", "at": 0.1, "text": SSE},
        {"kind": "end", "at": 0.2, "exchange": exchange},
    ]
    file = tmp_path / "req_1.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert main(["dialects", "draft", str(file)]) == 0
    assert "the draft parses the recording: 2 of 2 calls" in capsys.readouterr().err


def test_elements_are_drafted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "act.txt"
    file.write_text(ELEMENTS)
    assert main(["dialects", "draft", str(file)]) == 0
    reply = il.parse(ELEMENTS, il.load_dialect(capsys.readouterr().out))
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [
        ("write", {"path": path, "mode": 420}) for path in ("a.py", "b.py")
    ]


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize("name", ["hermes", "kimi_k2", "qwen3_coder", "glm45", "deepseek_v31", "mistral_v11"])
def test_recording_of_a_known_format_names_its_dialect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    builtin = il.dialect_for("") if name == "" else next(each for each in il.dialects() if each.name == name)
    file = tmp_path / "reply.txt"
    file.write_text(builtin.sample, encoding="utf-8")
    assert main(["dialects", "draft", str(file)]) == 0
    out, err = capsys.readouterr()
    assert f"the built-in dialect {name} parses the recording: 2 calls" in err
    assert il.load_dialect(out).shape == builtin.shape


REFUSED: dict[str, tuple[dict[str, str | bytes], str, str]] = {
    # files; the argument; the error
    "JSON": ({"x.json": '{"text": {"a": "{{ b }}"}}'}, "x.json", "x.json is JSON without a chat template"),
    "incomplete JSON": ({"x.json": '{"chat_template": "{{ a }}'}, "x.json", "x.json is not valid JSON"),
    "JSON list": ({"x.json": '["{{ messages }}"]'}, "x.json", "x.json is JSON without a chat template"),
    "folder": ({"m/config.json": "{}"}, "m", "m has no chat template: none of additional_chat_templates/"),
    "folder without template": (
        {"m/tokenizer_config.json": "{}"},
        "m",
        "m has no chat template: tokenizer_config.json has none",
    ),
    "web page": ({"x.jinja": "<!DOCTYPE html><p>{{ a }}"}, "x.jinja", "x.jinja is a web page"),
    "GGUF": ({"x.gguf": b"GGUF\x03\0"}, "x.gguf", "x.gguf is a GGUF file"),
    "binary": ({"x": b"\x7fELF\0{{"}, "x", "x is not text"),
    "empty": ({"x": "\n"}, "x", "x is empty"),
    "Ollama": ({"x": "TEMPLATE {{ if .System }}{{ .System }}{{ end }}"}, "x", "x is a Go template"),
    "prose": ({"x.txt": "I cannot do that."}, "x.txt", "no calls were found in the text"),
    "JSON in prose": ({"x.txt": 'The answer is {"a": 1}.'}, "x.txt", "no known shape matches the calls in the text"),
    "dialect file": ({"x.yaml": "name: x\nsummary: y\n"}, "x.yaml", "no calls were found in the text"),
    "calls that the server has parsed": (
        {
            "x.json": json.dumps(
                {
                    "choices": [
                        {
                            "index": 0,
                            "message": {
                                "role": "assistant",
                                "tool_calls": [
                                    {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
                                ],
                            },
                            "finish_reason": "tool_calls",
                        }
                    ]
                }
            )
        },
        "x.json",
        "x.json has calls already",
    ),
    "missing": ({}, "nothing.jinja", "cannot read nothing.jinja: no such file"),
}


@pytest.mark.parametrize(("files", "argument", "error"), REFUSED.values(), ids=REFUSED)
def test_other_input_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    files: dict[str, str | bytes],
    argument: str,
    error: str,
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    assert main(["dialects", "draft", argument]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"error: {error}" in err
    assert "\nhint: " in err


def test_names_of_calls_in_text() -> None:
    rows = {
        "<call>functions.ls:0<with>{}</call>": ["ls"],
        '[{"name": "a", "parameters": {}}, {"tool": "b", "input": {"x": 1}}]': ["a", "b"],
        '{"function": {"name": "a", "arguments": {}}}': ["a"],
        '{"city": "Paris"}': [],
        "<f=ls><p=path>/</p></f>": ["ls"],
    }
    assert {text: [call.name for call in find_calls(RecordedReply(text))] for text in rows} == rows


def test_no_file_of_the_project_is_drafted_by_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    """Files that are no templates give an error, never a dialect."""
    for path in (ROOT / "pyproject.toml", ROOT / "README.md", ROOT / "docs" / "reference" / "openapi.json"):
        assert main(["dialects", "draft", str(path)]) == 1, path
        assert capsys.readouterr().out == ""


@pytest.mark.sampled
def test_damaged_recordings_give_a_working_draft_or_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, file = random.Random(0), tmp_path / "reply.txt"
    texts = [ACME, ELEMENTS, *(dialect.sample for dialect in il.dialects() if dialect.shape)]
    for _ in sample(range(100), 5):
        chars = list(rng.choice(texts))
        for _ in range(rng.randint(1, 5)):
            at = rng.randrange(len(chars))
            chars[at : at + rng.choice((0, 1, 5, 20))] = rng.choice(("", "<", ">", "{", "]", '"', "\n", "$", "{name}"))
        file.write_text("".join(chars), encoding="utf-8")
        status = main(["dialects", "draft", str(file)])
        out, err = capsys.readouterr()
        assert status == 0 or "\nerror: " in err
        if status == 0:
            assert il.parse(file.read_text("utf-8"), il.load_dialect(out)).calls
