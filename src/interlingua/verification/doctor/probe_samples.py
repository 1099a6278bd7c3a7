"""Requests of the doctor: short, and with one right answer each."""

from __future__ import annotations

from interlingua.verification.samples.sample import Expectation, ExpectedCall, Sample

__all__ = [
    "CALL",
    "COUNTING",
    "IMAGE",
    "JSON_ANSWER",
    "PARALLEL",
    "STRUCTURAL_TAG",
    "STRUCTURAL_TAG_FORMAT",
    "SYSTEM_MESSAGE",
    "THINKING_REPLAY",
    "choice_sample",
]

_WEATHER_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Return the current weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Name of the city"}},
            "required": ["city"],
        },
    },
}
_TIME_TOOL = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "Return the current time of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
_TOOLS = [_WEATHER_TOOL, _TIME_TOOL]
_RED_IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NsQkAAAjAsP7/tF7hIA"
    "Syp6lTCQQCgUAgEAgEgi/BAjLD/C5w/SM9AAAAAElFTkSuQmCC"
)
"""Image of 32 × 32 red pixels. Some servers refuse smaller ones."""


def _user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


COUNTING = Sample(id="counting", request={"messages": [_user("Count from 1 to 30 in digits, separated by spaces.")]})
SYSTEM_MESSAGE = Sample(
    id="system-message",
    request={
        "messages": [
            {"role": "system", "content": "You are a careful assistant. Answer with one word."},
            _user("Say hello."),
        ]
    },
)
CALL = Sample(
    id="call",
    request={"messages": [_user("What is the weather in Paris? Use get_weather city='Paris'.")], "tools": _TOOLS},
    expect=Expectation("calls", (ExpectedCall("get_weather", {"city": "Paris"}),)),
)
PARALLEL = Sample(
    id="parallel",
    request={
        "messages": [
            _user("Make two calls at once: get_weather city='Paris' and get_weather city='Rome'. Make both now."),
        ],
        "tools": _TOOLS,
    },
    expect=Expectation(
        "calls",
        (ExpectedCall("get_weather", {"city": "Paris"}), ExpectedCall("get_weather", {"city": "Rome"})),
    ),
)
_PAST_CALL = {
    "id": "call_00000001",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
}
_PAST_THINKING = "The user asks for the weather in Paris. " * 12 + "I call get_weather."
THINKING_REPLAY = Sample(
    id="thinking-replay",
    request={
        "messages": [
            _user("What is the weather in Paris? Use get_weather city='Paris', then tell me in one sentence."),
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [_PAST_CALL],
                "reasoning_content": _PAST_THINKING,
            },
            {"role": "tool", "tool_call_id": "call_00000001", "content": "sunny, 21 degrees"},
        ],
        "tools": _TOOLS,
    },
)
IMAGE = Sample(
    id="image",
    request={
        "messages": [
            _user(
                [
                    {"type": "text", "text": "Which colour is this? Answer with one word."},
                    {"type": "image_url", "image_url": {"url": _RED_IMAGE}},
                ]
            )
        ]
    },
)
_ANSWER_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
JSON_ANSWER = Sample(
    id="json",
    request={
        "messages": [_user("Which city is the capital of France? Answer as JSON.")],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": _ANSWER_SCHEMA, "strict": True},
        },
    },
)
STRUCTURAL_TAG = Sample(
    id="structural-tag",
    request={
        "messages": [_user("Write <answer>, a JSON object with the capital of France as `answer`, and </answer>.")]
    },
)
STRUCTURAL_TAG_FORMAT = {
    "type": "structural_tag",
    "structures": [{"begin": "<answer>", "schema": _ANSWER_SCHEMA, "end": "</answer>"}],
    "triggers": ["<answer>"],
}
"""Response format of vLLM and SGLang that constrains a part of a text."""


def choice_sample(mode: str) -> Sample:
    """Return a request that must call a tool (`required`), this tool (`named`), or none (`none`)."""
    if mode == "none":
        return Sample(
            id="choice-none",
            request={**CALL.request, "tool_choice": "none"},
            expect=Expectation("text"),
        )
    named = {"type": "function", "function": {"name": "get_time"}}
    expected = (ExpectedCall("get_time"),) if mode == "named" else ()
    return Sample(
        id=f"choice-{mode}",
        request={
            "messages": [_user("Hello! I am in Paris.")],
            "tools": _TOOLS,
            "tool_choice": named if mode == "named" else "required",
        },
        expect=Expectation("calls", expected),
    )
