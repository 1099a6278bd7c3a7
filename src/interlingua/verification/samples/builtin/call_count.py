"""Samples on the number of calls: several at once, and calls without arguments."""

from __future__ import annotations

from interlingua.verification.samples.builtin.offered_tools import (
    CALCULATE,
    CONVERT_CURRENCY,
    GET_STOCK_PRICE,
    GET_TIME,
    GET_WEATHER,
    MANY_TOOLS,
    READ_FILE,
    RUN_COMMAND,
    SET_ALARM,
    WRITE_FILE,
)
from interlingua.verification.samples.builtin.sample_builder import call, calling, obj, string, tool

__all__ = ["SAMPLES"]

_AT_ONCE = "Make all calls of a task at once, in one reply."
_LOCK_DOORS = tool("lock_doors", "Lock all doors. Takes no arguments.", obj({}, additionalProperties=False))
_PING = tool("ping", "Check whether the service is alive.", {"type": "object", "properties": {}})
_REFRESH = tool("refresh", "Reload all data; all arguments are optional.", obj({"cache": string()}, []))

_PARALLEL = (
    (
        "Compare the weather: get_weather city='Paris' and get_weather city='Rome'.",
        [GET_WEATHER],
        (call("get_weather", city="Paris"), call("get_weather", city="Rome")),
    ),
    (
        "Get three prices: get_stock_price symbol='AAPL' and get_stock_price symbol='NVDA' "
        "and get_stock_price symbol='SAP'.",
        [GET_STOCK_PRICE, GET_WEATHER],
        tuple(call("get_stock_price", symbol=symbol) for symbol in ("AAPL", "NVDA", "SAP")),
    ),
    (
        "Do both: get_weather city='Oslo' and set_alarm time='05:15' label='ski'.",
        [GET_WEATHER, SET_ALARM],
        (call("get_weather", city="Oslo"), call("set_alarm", time="05:15", label="ski")),
    ),
    (
        "Read both files: read_file path='a.txt' and read_file path='b.txt'.",
        MANY_TOOLS,
        (call("read_file", path="a.txt"), call("read_file", path="b.txt")),
    ),
    (
        "Convert twice: convert_currency amount=10 source='CHF' target='JPY' "
        "and convert_currency amount=20 source='CHF' target='JPY'.",
        [CONVERT_CURRENCY],
        tuple(call("convert_currency", amount=amount, source="CHF", target="JPY") for amount in (10, 20)),
    ),
    (
        "Write two files: write_file path='one.txt' content='1' and write_file path='two.txt' content='2'.",
        [WRITE_FILE, READ_FILE],
        (call("write_file", path="one.txt", content="1"), call("write_file", path="two.txt", content="2")),
    ),
    (
        "Run these: run_command command='pwd' and run_command command='ls -la' and calculate expression='6*7'.",
        [RUN_COMMAND, CALCULATE],
        (
            call("run_command", command="pwd"),
            call("run_command", command="ls -la"),
            call("calculate", expression="6*7"),
        ),
    ),
    (
        "Check five cities: "
        + " and ".join(f"get_weather city='{city}'" for city in ("Bonn", "Kyiv", "Lima", "Pune", "Quito"))
        + ".",
        [GET_WEATHER],
        tuple(call("get_weather", city=city) for city in ("Bonn", "Kyiv", "Lima", "Pune", "Quito")),
    ),
    (
        "Roll the dice twice: run_command command='roll' timeout=1 and run_command command='roll' timeout=2.",
        [RUN_COMMAND],
        (call("run_command", command="roll", timeout=1), call("run_command", command="roll", timeout=2)),
    ),
)
_EMPTY = (
    ("What time is it? Call get_time().", [GET_TIME, GET_WEATHER], call("get_time")),
    ("Lock the house: lock_doors().", [_LOCK_DOORS, SET_ALARM], call("lock_doors")),
    ("Is the service alive? Use ping().", [_PING, RUN_COMMAND], call("ping")),
    ("Reload everything with refresh(), without arguments.", [_REFRESH, READ_FILE], call("refresh")),
)

SAMPLES = [
    *(
        calling(f"parallel-{n:02d}", prompt, tools, *calls, system=_AT_ONCE)
        for n, (prompt, tools, calls) in enumerate(_PARALLEL, 1)
    ),
    *(calling(f"empty-arguments-{n:02d}", prompt, tools, made) for n, (prompt, tools, made) in enumerate(_EMPTY, 1)),
]
