"""Error messages, and the length of the client's data in them."""

from __future__ import annotations

import pytest

import interlingua as il
from interlingua.errors import BadRequest

LONG = "cookie:" * 20_000
REQUESTS = [
    {"model": "m", "messages": [{"role": LONG, "content": "x"}]},
    {"model": "m", "messages": [{"role": "user", "content": "x"}], "tool_choice": LONG},
]


@pytest.mark.parametrize("body", REQUESTS, ids=lambda body: next(iter(body["messages"][0])) + str(len(body)))
def test_error_message_contains_little_of_the_request(body: dict[str, object]) -> None:
    with pytest.raises(BadRequest) as caught:
        il.translate_request(body, source="openai-chat", target="anthropic-messages")
    assert len(f"{caught.value}{caught.value.hint}") <= 2000


def test_end_of_long_message_is_kept() -> None:
    error = BadRequest(f"metadata.{LONG}", f"{LONG!r} is no role", f"not {LONG}")
    assert len(error.path) <= 301
    assert str(error).startswith("metadata.cookie:")
    assert str(error).endswith("cookie:' is no role")
    assert len(str(error)) + len(error.hint) < 2500
    short = BadRequest("messages[0].role", "'x' is no role", "user is one")
    assert (str(short), short.hint) == ("messages[0].role: 'x' is no role", "user is one")
