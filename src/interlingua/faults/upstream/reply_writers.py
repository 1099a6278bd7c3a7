"""Reply writers: well-formed replies of each API. The scenarios add the faults.

    writer = reply_writer_for(MESSAGES_PATH)
    writer.begin() + writer.text("Let me", " see.") + writer.call("read", '{"path": ', '"a"}') + writer.end()

A writer tracks open blocks, so that it can close them. Use a new one for each reply.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

from interlingua.faults.apis import CHAT_PATH, MESSAGES_PATH, RESPONSES_PATH
from interlingua.faults.upstream import chat_chunks
from interlingua.faults.upstream.chat_chunks import event
from interlingua.faults.upstream.script import Script, send_response, stream_response

__all__ = ["ChatReplyWriter", "MessagesReplyWriter", "ReplyWriter", "ResponsesReplyWriter", "reply_writer_for"]

INPUT_TOKENS, OUTPUT_TOKENS = 11, 7
"""Usage of every reply."""


class ReplyWriter(ABC):
    """Interface of the reply writers. A call stays open until the next text, call or end."""

    api = ""
    is_streaming = True
    """True if the client requested a stream."""
    upstream_key = ""
    """API key that the upstream received."""

    @abstractmethod
    def begin(self) -> bytes: ...

    @abstractmethod
    def text(self, *pieces: str) -> bytes: ...

    @abstractmethod
    def call(self, name: str, *pieces: str, id: str = "") -> bytes: ...

    @abstractmethod
    def end(self) -> bytes: ...

    @abstractmethod
    def error(self, message: str, error_type: str, code: int | None = None) -> bytes: ...

    @abstractmethod
    def complete_reply(self, text: str, *calls: tuple[str, str]) -> dict[str, Any]: ...

    def error_body(self, message: str, error_type: str, code: str | None = None) -> bytes:
        """Return the body of a response with a status of 400 or more."""
        return json.dumps({"error": {"message": message, "type": error_type, "param": None, "code": code}}).encode()

    def fresh_copy(self) -> ReplyWriter:
        """Return a new writer with the same settings."""
        copy = type(self)()
        copy.is_streaming, copy.upstream_key = self.is_streaming, self.upstream_key
        return copy

    def hello_stream(self) -> bytes:
        return self.begin() + self.text("Hel", "lo") + self.end()

    def reply_script(self, text: str = "Hello", *calls: tuple[str, str]) -> Script:
        """Return the script for a complete reply, as a stream or whole, as requested."""
        if not self.is_streaming:
            return [send_response("200 OK", json.dumps(self.complete_reply(text, *calls)).encode())]
        data = self.begin() + self.text(text) + b"".join(self.call(name, args) for name, args in calls)
        return stream_response(data + self.end())


class ChatReplyWriter(ReplyWriter):
    api = CHAT_PATH

    def __init__(self) -> None:
        self._calls = 0

    def begin(self) -> bytes:
        return chat_chunks.ROLE

    def text(self, *pieces: str) -> bytes:
        return b"".join(map(chat_chunks.delta, pieces))

    def call(self, name: str, *pieces: str, id: str = "") -> bytes:
        index, self._calls = self._calls, self._calls + 1
        start = chat_chunks.call_delta(index, id or f"call_{index}", name=name, arguments="")
        return start + b"".join(chat_chunks.call(piece, index) for piece in pieces)

    def end(self) -> bytes:
        return chat_chunks.delta(finish="tool_calls" if self._calls else "stop") + self.usage() + chat_chunks.DONE

    def usage(self) -> bytes:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
        return event({**head, "usage": _chat_usage()})

    def error(self, message: str, error_type: str, code: int | None = None) -> bytes:
        return event({"error": {"message": message, "type": error_type, "code": code}})

    def complete_reply(self, text: str, *calls: tuple[str, str]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            functions = [{"name": name, "arguments": args} for name, args in calls]
            tool_calls = [
                {"id": f"call_{n}", "type": "function", "function": function} for n, function in enumerate(functions)
            ]
            message["tool_calls"] = tool_calls
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
        return {**head, "choices": [choice], "usage": _chat_usage()}


def _chat_usage() -> dict[str, int]:
    return {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }


def _named_event(payload: dict[str, Any]) -> bytes:
    return f"event: {payload['type']}\n".encode() + event(payload)


class MessagesReplyWriter(ReplyWriter):
    api = MESSAGES_PATH

    def __init__(self) -> None:
        self._index = -1
        self._open_block = ""
        self._calls = 0

    def begin(self) -> bytes:
        return _named_event({"type": "message_start", "message": self._message([], None, 1)})

    def text(self, *pieces: str) -> bytes:
        start = b"" if self._open_block == "text" else self._start_block("text", text="")
        return start + b"".join(self._delta("text_delta", text=piece) for piece in pieces)

    def call(self, name: str, *pieces: str, id: str = "") -> bytes:
        self._calls += 1
        start = self._start_block("tool_use", id=id or f"toolu_{self._calls}", name=name, input={})
        return start + b"".join(self._delta("input_json_delta", partial_json=piece) for piece in pieces)

    def end(self) -> bytes:
        block_stop = self._stop_block()
        reason = {"stop_reason": self._stop_reason(), "stop_sequence": None}
        message_delta = _named_event(
            {"type": "message_delta", "delta": reason, "usage": {"output_tokens": OUTPUT_TOKENS}}
        )
        return block_stop + message_delta + _named_event({"type": "message_stop"})

    def error(self, message: str, error_type: str, code: int | None = None) -> bytes:  # noqa: ARG002
        return _named_event({"type": "error", "error": {"type": error_type, "message": message}})

    def complete_reply(self, text: str, *calls: tuple[str, str]) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
        for number, (name, args) in enumerate(calls):
            blocks.append({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": json.loads(args)})
        return self._message(blocks, "tool_use" if calls else "end_turn", OUTPUT_TOKENS)

    def error_body(self, message: str, error_type: str, code: str | None = None) -> bytes:  # noqa: ARG002
        return json.dumps({"type": "error", "error": {"type": error_type, "message": message}}).encode()

    def _message(self, content: list[Any], reason: str | None, tokens: int) -> dict[str, Any]:
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content}
        usage = {"input_tokens": INPUT_TOKENS, "output_tokens": tokens}
        return {**head, "stop_reason": reason, "stop_sequence": None, "usage": usage}

    def _stop_reason(self) -> str:
        return "tool_use" if self._calls else "end_turn"

    def _start_block(self, block_type: str, **fields: Any) -> bytes:
        previous_stop = self._stop_block()
        self._index, self._open_block = self._index + 1, block_type
        block = {"type": block_type, **fields}
        return previous_stop + _named_event(
            {"type": "content_block_start", "index": self._index, "content_block": block}
        )

    def _delta(self, delta_type: str, **fields: str) -> bytes:
        return _named_event(
            {"type": "content_block_delta", "index": self._index, "delta": {"type": delta_type, **fields}}
        )

    def _stop_block(self) -> bytes:
        open_block, self._open_block = self._open_block, ""
        return _named_event({"type": "content_block_stop", "index": self._index}) if open_block else b""


class ResponsesReplyWriter(ReplyWriter):
    api = RESPONSES_PATH

    def __init__(self) -> None:
        self._output: list[dict[str, Any]] = []
        self._open_item = ""
        self._sequence_number = 0

    def begin(self) -> bytes:
        return self._event("response.created", response=self._response("in_progress"))

    def text(self, *pieces: str) -> bytes:
        data = b"" if self._open_item == "message" else self._start_message()
        for piece in pieces:
            self._part["text"] += piece
            data += self._event("response.output_text.delta", **self._item_position(0), delta=piece)
        return data

    def call(self, name: str, *pieces: str, id: str = "") -> bytes:
        previous_stop, number = self._stop_item(), len(self._output)
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": id or f"call_{number}"}
        self._output.append({**item, "name": name, "arguments": "", "status": "in_progress"})
        self._open_item = "function_call"
        data = previous_stop + self._event("response.output_item.added", output_index=number, item=self._output[-1])
        for piece in pieces:
            self._output[-1]["arguments"] += piece
            data += self._event("response.function_call_arguments.delta", **self._item_position(), delta=piece)
        return data

    def end(self) -> bytes:
        return self._stop_item() + self._event("response.completed", response=self._response("completed"))

    def error(self, message: str, error_type: str, code: int | None = None) -> bytes:  # noqa: ARG002
        failed = self._response("failed") | {"error": {"code": error_type, "message": message}}
        return self._event("response.failed", response=failed)

    def complete_reply(self, text: str, *calls: tuple[str, str]) -> dict[str, Any]:
        self.text(text)
        for name, args in calls:
            self.call(name, args)
        self._stop_item()
        return self._response("completed")

    @property
    def _part(self) -> dict[str, Any]:
        part: dict[str, Any] = self._output[-1]["content"][0]
        return part

    def _start_message(self) -> bytes:
        previous_stop, number = self._stop_item(), len(self._output)
        item: dict[str, Any] = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "in_progress"}
        data = previous_stop + self._event(
            "response.output_item.added", output_index=number, item={**item, "content": []}
        )
        self._output.append({**item, "content": [{"type": "output_text", "text": "", "annotations": []}]})
        self._open_item = "message"
        return data + self._event("response.content_part.added", **self._item_position(0), part=self._part)

    def _stop_item(self) -> bytes:
        open_item, self._open_item = self._open_item, ""
        if not open_item:
            return b""
        item = self._output[-1]
        item["status"] = "completed"
        data = b""
        if open_item == "message":
            data = self._event("response.output_text.done", **self._item_position(0), text=self._part["text"])
            data += self._event("response.content_part.done", **self._item_position(0), part=self._part)
        else:
            data = self._event(
                "response.function_call_arguments.done", **self._item_position(), arguments=item["arguments"]
            )
        return data + self._event("response.output_item.done", output_index=len(self._output) - 1, item=item)

    def _item_position(self, part: int | None = None) -> dict[str, Any]:
        position = {"item_id": self._output[-1]["id"], "output_index": len(self._output) - 1}
        return position if part is None else {**position, "content_index": part}

    def _response(self, status: str) -> dict[str, Any]:
        usage = {
            "input_tokens": INPUT_TOKENS,
            "output_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        }
        usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}  # type: ignore[dict-item]
        head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": status}
        more_fields = {"error": None, "incomplete_details": None, "output": self._output, "tools": []}
        return {**head, **more_fields, "usage": usage if status == "completed" else None}

    def _event(self, event_type: str, **fields: Any) -> bytes:
        self._sequence_number += 1
        return _named_event({"type": event_type, "sequence_number": self._sequence_number - 1, **fields})


_WRITERS: dict[str, type[ReplyWriter]] = {
    CHAT_PATH: ChatReplyWriter,
    MESSAGES_PATH: MessagesReplyWriter,
    RESPONSES_PATH: ResponsesReplyWriter,
}


def reply_writer_for(api: str) -> ReplyWriter:
    return _WRITERS[api]()
