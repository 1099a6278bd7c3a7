"""Samples on the choice of a tool: one of many, none that fits, and a choice that the request makes."""

from __future__ import annotations

from interlingua.verification.samples.builtin.offered_tools import (
    CALCULATE,
    CREATE_EVENT,
    DELETE_FILE,
    GET_STOCK_PRICE,
    GET_TIME,
    GET_WEATHER,
    MANY_TOOLS,
    READ_FILE,
    SET_ALARM,
    TRANSLATE_TEXT,
    WRITE_FILE,
)
from interlingua.verification.samples.builtin.sample_builder import call, calling, talking, user

__all__ = ["SAMPLES"]

_TEXT_ONLY = "If no tool fits this request, answer with text only."
_ONE_OF_MANY = (
    ("What is the weather in Lisbon right now?", call("get_weather", city="Lisbon")),
    ("Set an alarm: call set_alarm with time='06:45' and label='gym'.", call("set_alarm", time="06:45", label="gym")),
    (
        "Convert 250 USD to EUR: convert_currency amount=250 source='USD' target='EUR'.",
        call("convert_currency", amount=250, source="USD", target="EUR"),
    ),
    (
        "Which trains go from Vienna to Graz? Use find_train origin='Vienna' destination='Graz'.",
        call("find_train", origin="Vienna", destination="Graz"),
    ),
    ("Dim the light: set_light room='kitchen' percent=30.", call("set_light", room="kitchen", percent=30)),
    ("Look up a share price: get_stock_price symbol='MSFT'.", call("get_stock_price", symbol="MSFT")),
    (
        "Order a pizza with order_pizza: kind='margherita' size='large'.",
        call("order_pizza", kind="margherita", size="large"),
    ),
    (
        "Play the song with play_music title='Blue in Green' artist='Miles Davis'.",
        call("play_music", title="Blue in Green", artist="Miles Davis"),
    ),
    (
        "Search the sources with search_code for pattern='TODO' in folder='src'.",
        call("search_code", pattern="TODO", folder="src"),
    ),
    (
        "Add a contact: add_contact name='Ada Brown' phone='+44 20 7946 0018'.",
        call("add_contact", name="Ada Brown", phone="+44 20 7946 0018"),
    ),
)
_NONE_FITTING = (
    ("Write a haiku about autumn.", [GET_WEATHER, SET_ALARM]),
    ("How many legs does a spider have?", [READ_FILE, WRITE_FILE]),
    ("Hello! How are you today?", MANY_TOOLS[:8]),
    ("Explain in one sentence what a hash table is.", [CREATE_EVENT, GET_STOCK_PRICE]),
    ("Name three primary colours.", MANY_TOOLS),
    ("Please book a flight from Oslo to Rome for me.", [GET_WEATHER, CALCULATE]),
    ("Who wrote the novel Emma?", [DELETE_FILE, GET_TIME]),
    ("Thank you, that was all.", [TRANSLATE_TEXT, SET_ALARM]),
)

SAMPLES = [
    *(calling(f"one-of-many-{n:02d}", prompt, MANY_TOOLS, made) for n, (prompt, made) in enumerate(_ONE_OF_MANY, 1)),
    *(
        talking(f"none-fitting-{n:02d}", f"{prompt} {_TEXT_ONLY}", tools)
        for n, (prompt, tools) in enumerate(_NONE_FITTING, 1)
    ),
    calling(
        "tool-choice-01",
        "Good morning! The weather in Bergen matters to me: get_weather city='Bergen'.",
        [GET_WEATHER, SET_ALARM],
        call("get_weather", city="Bergen"),
        tool_choice="required",
    ),
    calling(
        "tool-choice-02",
        "Wake me up: set_alarm time='07:30'.",
        [GET_WEATHER, SET_ALARM],
        call("set_alarm", time="07:30"),
        tool_choice={"type": "function", "function": {"name": "set_alarm"}},
    ),
    talking(
        "tool-choice-03",
        "What is the weather in Bergen? Answer with text only.",
        [GET_WEATHER],
        tool_choice="none",
    ),
    calling(
        "tool-choice-04",
        [user("What time is it? Call get_time().")],
        [GET_TIME, GET_WEATHER, CALCULATE],
        call("get_time"),
        tool_choice="auto",
        parallel_tool_calls=False,
    ),
]
