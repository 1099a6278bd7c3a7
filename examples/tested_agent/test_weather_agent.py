"""Tests of the agent. They run offline: `pytest examples/tested_agent`.

To record them again, start `interlingua serve --demo` and run `pytest examples/tested_agent --cassette-mode=all`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import weather_agent

if TYPE_CHECKING:
    from anthropic import Anthropic

QUESTION = "What is the weather in Paris and in Oslo?"


@pytest.mark.cassette
def test_agent_reports_the_weather() -> None:
    answer = weather_agent.answer(QUESTION)
    assert "sunny, 21 °C" in answer
    assert "rain, 9 °C" in answer


@pytest.mark.cassette("test_agent_reports_the_weather.yaml", mode="none", fault="503-empty@2")
def test_agent_survives_a_short_outage() -> None:
    """The second request fails, with the recording of the first test: the SDK sends it again."""
    assert "sunny, 21 °C" in weather_agent.answer(QUESTION)


@pytest.mark.cassette("test_agent_reports_the_weather.yaml", mode="none", fault="401-json")
def test_agent_reports_that_it_cannot_reach_the_model() -> None:
    assert weather_agent.answer(QUESTION) == "The model cannot be reached. Please try again."


@pytest.mark.cassette("test_agent_reports_the_weather.yaml", mode="none", cut="byte")
def test_recording_serves_clients_of_other_apis(anthropic_client: Anthropic) -> None:
    """The recorded client used Chat Completions. This one streams Messages, and every byte arrives on its own."""
    function = weather_agent.TOOLS[0]["function"]
    tool: Any = {**function, "input_schema": function["parameters"]}
    del tool["parameters"]
    with anthropic_client.messages.stream(
        model=weather_agent.MODEL,
        max_tokens=1000,
        messages=[{"role": "user", "content": QUESTION}],
        tools=[tool],
    ) as stream:
        message = stream.get_final_message()
    assert [block.input for block in message.content if block.type == "tool_use"] == [
        {"city": "Paris"},
        {"city": "Oslo"},
    ]
