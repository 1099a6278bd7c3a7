"""How an upstream of each wire says a reply, as it should: what goes wrong with it is in the scenarios.

    say = voice("messages")
    say.begin() + say.text("Let me", " see.") + say.call("read", '{"path": ', '"a"}') + say.end()

A voice remembers what is open, so that it can close it. One for each reply.
"""

from __future__ import annotations

import json
from typing import Any

from interlingua.faults.apis import CHAT_PATH, MESSAGES_PATH, RESPONSES_PATH
from interlingua.faults.upstream import chat_chunks as chat
from interlingua.faults.upstream.chat_chunks import event
from interlingua.faults.upstream.script import Script, answer, streamed

__all__ = ["ChatVoice", "MessagesVoice", "ResponsesVoice", "Voice", "voice"]

TOKENS_IN, TOKENS_OUT = 11, 7
"""What every reply says that it has cost."""


class Voice:
    """What all of them can say. Arguments of a call come in pieces; the call stays open until something follows it."""

    api = ""
    streams = True
    """Whether a stream was asked for."""
    key = ""
    """What the upstream was shown as its key."""

    def begin(self) -> bytes:
        raise NotImplementedError

    def text(self, *pieces: str) -> bytes:
        raise NotImplementedError

    def call(self, name: str, *pieces: str, id: str = "") -> bytes:
        raise NotImplementedError

    def end(self) -> bytes:
        raise NotImplementedError

    def error(self, message: str, kind: str, code: int | None = None) -> bytes:
        raise NotImplementedError

    def whole(self, text: str, *calls: tuple[str, str]) -> dict[str, Any]:
        raise NotImplementedError

    def refusal(self, message: str, kind: str, code: str | None = None) -> bytes:
        """The body of an answer with a status of 400 or more."""
        return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()

    def again(self) -> Voice:
        """One that has said nothing yet."""
        other = type(self)()
        other.streams, other.key = self.streams, self.key
        return other

    def hello(self) -> bytes:
        return self.begin() + self.text("Hel", "lo") + self.end()

    def reply(self, text: str = "Hello", *calls: tuple[str, str]) -> Script:
        """All of it, as it was asked for."""
        if not self.streams:
            return [answer("200 OK", json.dumps(self.whole(text, *calls)).encode())]
        said = self.begin() + self.text(text) + b"".join(self.call(name, args) for name, args in calls)
        return streamed(said + self.end())


class ChatVoice(Voice):
    api = CHAT_PATH

    def __init__(self) -> None:
        self._calls = 0

    def begin(self) -> bytes:
        return chat.ROLE

    def text(self, *pieces: str) -> bytes:
        return b"".join(map(chat.delta, pieces))

    def call(self, name: str, *pieces: str, id: str = "") -> bytes:
        index, self._calls = self._calls, self._calls + 1
        opened = chat.call_delta(index, id or f"call_{index}", name=name, arguments="")
        return opened + b"".join(chat.call(piece, index) for piece in pieces)

    def end(self) -> bytes:
        return chat.delta(finish="tool_calls" if self._calls else "stop") + self.usage() + chat.DONE

    def usage(self) -> bytes:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
        return event({**head, "usage": _chat_usage()})

    def error(self, message: str, kind: str, code: int | None = None) -> bytes:
        return event({"error": {"message": message, "type": kind, "code": code}})

    def whole(self, text: str, *calls: tuple[str, str]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            functions = [{"name": name, "arguments": args} for name, args in calls]
            told = [{"id": f"call_{n}", "type": "function", "function": one} for n, one in enumerate(functions)]
            message["tool_calls"] = told
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
        return {**head, "choices": [choice], "usage": _chat_usage()}


def _chat_usage() -> dict[str, int]:
    return {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT, "total_tokens": TOKENS_IN + TOKENS_OUT}


def _named(told: dict[str, Any]) -> bytes:
    return f"event: {told['type']}\n".encode() + event(told)


class MessagesVoice(Voice):
    api = MESSAGES_PATH

    def __init__(self) -> None:
        self._index = -1
        self._open = ""
        self._calls = 0

    def begin(self) -> bytes:
        return _named({"type": "message_start", "message": self._message([], None, 1)})

    def text(self, *pieces: str) -> bytes:
        opened = b"" if self._open == "text" else self._start("text", text="")
        return opened + b"".join(self._delta("text_delta", text=piece) for piece in pieces)

    def call(self, name: str, *pieces: str, id: str = "") -> bytes:
        self._calls += 1
        opened = self._start("tool_use", id=id or f"toolu_{self._calls}", name=name, input={})
        return opened + b"".join(self._delta("input_json_delta", partial_json=piece) for piece in pieces)

    def end(self) -> bytes:
        closed = self._stop()
        reason = {"stop_reason": self._reason(), "stop_sequence": None}
        said = _named({"type": "message_delta", "delta": reason, "usage": {"output_tokens": TOKENS_OUT}})
        return closed + said + _named({"type": "message_stop"})

    def error(self, message: str, kind: str, code: int | None = None) -> bytes:  # noqa: ARG002
        return _named({"type": "error", "error": {"type": kind, "message": message}})

    def whole(self, text: str, *calls: tuple[str, str]) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
        for number, (name, args) in enumerate(calls):
            blocks.append({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": json.loads(args)})
        return self._message(blocks, "tool_use" if calls else "end_turn", TOKENS_OUT)

    def refusal(self, message: str, kind: str, code: str | None = None) -> bytes:  # noqa: ARG002
        return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()

    def _message(self, content: list[Any], reason: str | None, tokens: int) -> dict[str, Any]:
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content}
        usage = {"input_tokens": TOKENS_IN, "output_tokens": tokens}
        return {**head, "stop_reason": reason, "stop_sequence": None, "usage": usage}

    def _reason(self) -> str:
        return "tool_use" if self._calls else "end_turn"

    def _start(self, kind: str, **fields: Any) -> bytes:
        closed = self._stop()
        self._index, self._open = self._index + 1, kind
        block = {"type": kind, **fields}
        return closed + _named({"type": "content_block_start", "index": self._index, "content_block": block})

    def _delta(self, kind: str, **said: str) -> bytes:
        return _named({"type": "content_block_delta", "index": self._index, "delta": {"type": kind, **said}})

    def _stop(self) -> bytes:
        was, self._open = self._open, ""
        return _named({"type": "content_block_stop", "index": self._index}) if was else b""


class ResponsesVoice(Voice):
    api = RESPONSES_PATH

    def __init__(self) -> None:
        self._output: list[dict[str, Any]] = []
        self._open = ""
        self._number = 0

    def begin(self) -> bytes:
        return self._told("response.created", response=self._response("in_progress"))

    def text(self, *pieces: str) -> bytes:
        said = b"" if self._open == "message" else self._start_message()
        for piece in pieces:
            self._part["text"] += piece
            said += self._told("response.output_text.delta", **self._place(0), delta=piece)
        return said

    def call(self, name: str, *pieces: str, id: str = "") -> bytes:
        closed, number = self._stop(), len(self._output)
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": id or f"call_{number}"}
        self._output.append({**item, "name": name, "arguments": "", "status": "in_progress"})
        self._open = "function_call"
        said = closed + self._told("response.output_item.added", output_index=number, item=self._output[-1])
        for piece in pieces:
            self._output[-1]["arguments"] += piece
            said += self._told("response.function_call_arguments.delta", **self._place(), delta=piece)
        return said

    def end(self) -> bytes:
        return self._stop() + self._told("response.completed", response=self._response("completed"))

    def error(self, message: str, kind: str, code: int | None = None) -> bytes:  # noqa: ARG002
        failed = self._response("failed") | {"error": {"code": kind, "message": message}}
        return self._told("response.failed", response=failed)

    def whole(self, text: str, *calls: tuple[str, str]) -> dict[str, Any]:
        self.text(text)
        for name, args in calls:
            self.call(name, args)
        self._stop()
        return self._response("completed")

    @property
    def _part(self) -> dict[str, Any]:
        part: dict[str, Any] = self._output[-1]["content"][0]
        return part

    def _start_message(self) -> bytes:
        closed, number = self._stop(), len(self._output)
        item: dict[str, Any] = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "in_progress"}
        said = closed + self._told("response.output_item.added", output_index=number, item={**item, "content": []})
        self._output.append({**item, "content": [{"type": "output_text", "text": "", "annotations": []}]})
        self._open = "message"
        return said + self._told("response.content_part.added", **self._place(0), part=self._part)

    def _stop(self) -> bytes:
        was, self._open = self._open, ""
        if not was:
            return b""
        item = self._output[-1]
        item["status"] = "completed"
        said = b""
        if was == "message":
            said = self._told("response.output_text.done", **self._place(0), text=self._part["text"])
            said += self._told("response.content_part.done", **self._place(0), part=self._part)
        else:
            said = self._told("response.function_call_arguments.done", **self._place(), arguments=item["arguments"])
        return said + self._told("response.output_item.done", output_index=len(self._output) - 1, item=item)

    def _place(self, part: int | None = None) -> dict[str, Any]:
        place = {"item_id": self._output[-1]["id"], "output_index": len(self._output) - 1}
        return place if part is None else {**place, "content_index": part}

    def _response(self, status: str) -> dict[str, Any]:
        usage = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT, "total_tokens": TOKENS_IN + TOKENS_OUT}
        usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}  # type: ignore[dict-item]
        head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": status}
        rest = {"error": None, "incomplete_details": None, "output": self._output, "tools": []}
        return {**head, **rest, "usage": usage if status == "completed" else None}

    def _told(self, kind: str, **fields: Any) -> bytes:
        self._number += 1
        return _named({"type": kind, "sequence_number": self._number - 1, **fields})


_VOICES: dict[str, type[Voice]] = {CHAT_PATH: ChatVoice, MESSAGES_PATH: MessagesVoice, RESPONSES_PATH: ResponsesVoice}


def voice(api: str) -> Voice:
    return _VOICES[api]()
