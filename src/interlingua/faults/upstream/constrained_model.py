"""Model that an engine constrains: a step that sends the first of several texts that the request allows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from interlingua.errors import InterlinguaError
from interlingua.exports.request_constraint import read_constraint
from interlingua.faults.upstream import chat_chunks
from interlingua.faults.upstream.reply_writers import ChatReplyWriter
from interlingua.faults.upstream.script import ReceivedRequest, Step, send_response, stream_response

__all__ = ["constrained_reply"]


def constrained_reply(texts: Sequence[str]) -> Step:
    """Send the first of these texts, by preference of the model. A constraint in the request excludes some of them."""

    async def step(request: ReceivedRequest) -> None:
        try:
            matcher = read_constraint(request.body)
        except InterlinguaError as error:
            body = ChatReplyWriter().error_body(f"Invalid structural tag specification. {error}", "BadRequestError")
            await send_response("400 Bad Request", body)(request)
            return
        text = next(text for text in texts if matcher is None or matcher.accepts(text))
        if request.body.get("stream"):
            data = chat_chunks.ROLE + chat_chunks.delta(text) + chat_chunks.delta(finish="stop") + chat_chunks.DONE
            steps: Sequence[Step] = stream_response(data)
        else:
            steps = [send_response("200 OK", json.dumps(ChatReplyWriter().complete_reply(text)).encode())]
        for reply_step in steps:
            await reply_step(request)

    return step
