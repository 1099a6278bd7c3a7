"""The chat handler for llama-cpp-python, with stand-ins for its classes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import interlingua as il
from interlingua.errors import UsageError
from tests.integrations.stand_ins import Record, import_plugin
from tests.support.harness import tool

CALL = '<tool_call>{"name": "ls", "arguments": {"path": "."}}</tool_call>'
TOOLS = [tool("ls", ["path"])]


class Tokenizer:
    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = True) -> list[int]:  # noqa: ARG002
        return list(text)

    def detokenize(self, tokens: list[int], prev_tokens: Any = None, special: bool = False) -> bytes:  # noqa: ARG002
        return bytes(tokens) if special else b""


class Llama:
    model_path = "/models/model.gguf"

    def __init__(self, text: str, **metadata: str) -> None:
        self.text = text
        self.metadata = {"tokenizer.chat_template": "…", "general.name": "Qwen3 8B"} | metadata
        self.tokenizer_: Any = Tokenizer()
        self.grammar: Any = None

    def token_bos(self) -> int:
        return -1

    def token_eos(self) -> int:
        return 36

    def detokenize(self, tokens: list[int], special: bool = False) -> bytes:
        text: bytes = self.tokenizer_.detokenize(tokens, special=special)
        return text


class Grammar(Record):
    @classmethod
    def from_string(cls, text: str, verbose: bool) -> Grammar:
        return cls(text=text, verbose=verbose)


def make_formatter(template: str, **options: Any) -> Any:
    return lambda **_: Record(prompt=f"user: hi {template}", **options)


def complete_chat(formatter: Any) -> Any:
    """Return a handler as that of llama-cpp-python: the text is content."""

    def handler(*, llama: Llama, stream: bool, grammar: Any, **_: Any) -> Any:
        formatter()
        llama.grammar = grammar
        base = {"id": "chatcmpl-1", "created": 1, "model": "m"}
        if stream:
            deltas = [{"role": "assistant"}, *({"content": char} for char in llama.text), {}]
            finishes = [None] * (len(deltas) - 1) + ["stop"]
            return (
                {
                    **base,
                    "object": "chat.completion.chunk",
                    "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
                }
                for delta, finish in zip(deltas, finishes, strict=True)
            )
        message = {"role": "assistant", "content": llama.text}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        return {**base, "object": "chat.completion", "choices": choices}

    return handler


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.delenv("INTERLINGUA_DIALECT", raising=False)
    modules: dict[str, dict[str, Any]] = {
        "llama_cpp": {"Llama": Llama, "LlamaGrammar": Grammar},
        "llama_cpp.llama_chat_format": {
            "Jinja2ChatFormatter": make_formatter,
            "chat_formatter_to_chat_completion_handler": complete_chat,
        },
    }
    return import_plugin(monkeypatch, "llama_cpp_handler", modules)


def run(plugin: ModuleType, llama: Llama, stream: bool = False, template: str = "", **options: Any) -> il.Reply:
    handler = plugin.InterlinguaChatHandler(chat_template=template or None)
    result = handler(llama=llama, messages=[], tools=TOOLS, stream=stream, **options)
    accumulator = il.Accumulator("openai-chat")
    for chunk in result if stream else [result]:
        accumulator.add(chunk)
    return accumulator.reply()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("template", "start"), [("", "<think>"), ("<think>", "")])
def test_reply_has_thinking_text_and_calls(plugin: ModuleType, stream: bool, template: str, start: str) -> None:
    reply = run(plugin, Llama(f"{start}Hm.</think>I will.{CALL}"), stream, template)
    assert (reply.reasoning, reply.text, reply.stop_reason) == ("Hm.", "I will.", "tool_calls")
    assert [(call.name, call.arguments) for call in reply.calls] == [("ls", '{"path": "."}')]


def test_required_call_has_a_grammar(plugin: ModuleType) -> None:
    llama = Llama(CALL)
    run(plugin, llama, tool_choice="required")
    assert "root ::=" in llama.grammar.text
    run(plugin, llama, tool_choice="auto")
    assert llama.grammar is None


def test_dialect_without_a_grammar_is_not_constrained(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("INTERLINGUA_DIALECT", "standard")
    llama = Llama("Hello.")
    run(plugin, llama, tool_choice="required")
    assert llama.grammar is None
    assert "not constrained" in caplog.text


def test_special_tokens_stay_in_the_text(plugin: ModuleType) -> None:
    llama = Llama("Hello.")
    assert llama.detokenize([65]) == b""
    run(plugin, llama)
    run(plugin, llama)
    assert llama.detokenize([65]) == b"A"
    assert llama.tokenizer_.tokenize(b"A") == [65]


@pytest.mark.parametrize(("options", "message"), [({"functions": [{}]}, "functions"), ({"stream": False}, "template")])
def test_mistakes_are_reported(plugin: ModuleType, options: dict[str, Any], message: str) -> None:
    llama = Llama("Hello.", **{"tokenizer.chat_template": ""})
    with pytest.raises(UsageError, match=message):
        run(plugin, llama, **options)
