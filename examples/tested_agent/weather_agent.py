"""A small agent with one tool. `test_weather_agent.py` tests it with recorded replies."""

from __future__ import annotations

import json
from typing import Any

import openai

MODEL = "demo/kimi_k2"
MAX_TURNS = 5
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Returns the current weather of a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
WEATHER = {"Paris": "sunny, 21 °C", "Oslo": "rain, 9 °C"}


def get_weather(city: str) -> str:
    return WEATHER.get(city, "unknown")


def answer(question: str) -> str:
    """Let the model call the tool until it answers the question."""
    client = openai.OpenAI()  # its address and its key are in OPENAI_BASE_URL and OPENAI_API_KEY
    messages: list[Any] = [{"role": "user", "content": question}]
    try:
        for _ in range(MAX_TURNS):
            reply = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
            if not reply.tool_calls:
                return reply.content or ""
            messages.append(reply.model_dump(exclude_none=True))
            for call in reply.tool_calls:
                assert call.type == "function"
                result = get_weather(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    except openai.APIError:
        return "The model cannot be reached. Please try again."
    finally:
        client.close()
    return "I could not find an answer."
