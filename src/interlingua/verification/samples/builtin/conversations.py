"""Samples with a history: calls over several turns, results with errors, and thinking."""

from __future__ import annotations

from interlingua.verification.samples.builtin.offered_tools import (
    CALCULATE,
    CONVERT_CURRENCY,
    CREATE_EVENT,
    GET_STOCK_PRICE,
    GET_WEATHER,
    LIST_FILES,
    READ_FILE,
    REPORT_PROBLEM,
    RUN_COMMAND,
    SAVE_NOTE,
    SEND_EMAIL,
    SET_ALARM,
    WRITE_FILE,
)
from interlingua.verification.samples.builtin.sample_builder import (
    call,
    calling,
    obj,
    string,
    talking,
    tool,
    turn,
    user,
)

__all__ = ["SAMPLES"]

_FIND_PERSON = tool("find_person", "Return the e-mail address of a person.", obj({"name": string()}))

_SEQUENTIAL = [
    calling(
        "sequential-01",
        [
            user("First read_file path='in.txt', then write_file path='out.txt' content='done'."),
            *turn((call("read_file", path="in.txt"), "three lines")),
        ],
        [READ_FILE, WRITE_FILE],
        call("write_file", path="out.txt", content="done"),
    ),
    calling(
        "sequential-02",
        [
            user(
                "Find the address of Mia Wong with find_person. Then send an e-mail to this address, "
                "with subject='Lunch' and body='Today at noon?'."
            ),
            *turn((call("find_person", name="Mia Wong"), "mia.wong@example.com")),
        ],
        [_FIND_PERSON, SEND_EMAIL],
        call("send_email", to="mia.wong@example.com", subject="Lunch", body="Today at noon?"),
    ),
    talking(
        "sequential-03",
        [
            user("What is the weather in Cork? Use get_weather city='Cork', and tell me the result in one sentence."),
            *turn((call("get_weather", city="Cork"), '{"sky": "rain", "celsius": 11}')),
        ],
        [GET_WEATHER],
    ),
    calling(
        "sequential-04",
        [
            user(
                "Do this step by step, one call at a time: get_weather city='Turin', then get_weather city='Milan', "
                "then save_note title='Trip' text='Go north'."
            ),
            *turn((call("get_weather", city="Turin"), "fog")),
            *turn((call("get_weather", city="Milan"), "sun"), first_id=1),
        ],
        [GET_WEATHER, SAVE_NOTE],
        call("save_note", title="Trip", text="Go north"),
    ),
    calling(
        "sequential-05",
        [
            user("How much are 3 shares of SAP in US dollars? Get the price first; it is in euros. Convert the total."),
            *turn((call("get_stock_price", symbol="SAP"), "The price is 200 EUR.")),
            *turn((call("calculate", expression="3*200"), "600"), first_id=1),
        ],
        [GET_STOCK_PRICE, CALCULATE, CONVERT_CURRENCY],
        call("convert_currency", amount=600, source="EUR", target="USD"),
    ),
    calling(
        "sequential-06",
        [
            user("What is the weather in Bari? Use get_weather city='Bari'."),
            *turn((call("get_weather", city="Bari"), "sunny, 24 degrees")),
            {"role": "assistant", "content": "It is sunny in Bari, with 24 degrees."},
            user("And in Trento? Use get_weather city='Trento'."),
        ],
        [GET_WEATHER, SET_ALARM],
        call("get_weather", city="Trento"),
    ),
    calling(
        "sequential-07",
        [
            user("List the files of the folder logs, then read the newest one."),
            *turn(
                (
                    call("list_files", folder="logs"),
                    "logs/2026-01-03.txt\nlogs/2026-03-09.txt\nlogs/2026-02-11.txt",
                )
            ),
        ],
        [LIST_FILES, READ_FILE],
        call("read_file", path="logs/2026-03-09.txt"),
    ),
    talking(
        "sequential-08",
        [
            user("Compare get_weather city='Nice' and get_weather city='Lille', then answer with text only."),
            *turn((call("get_weather", city="Nice"), "sun"), (call("get_weather", city="Lille"), "rain")),
        ],
        [GET_WEATHER],
        system="Call each tool once at most. Then answer.",
    ),
    calling(
        "sequential-09",
        [
            user(
                "Plan the review: create_event title='Review' start='2026-04-02T10:00' minutes=45, "
                "then set_alarm time='09:55'."
            ),
            *turn((call("create_event", title="Review", start="2026-04-02T10:00", minutes=45), "created")),
        ],
        [CREATE_EVENT, SET_ALARM],
        call("set_alarm", time="09:55"),
    ),
    calling(
        "sequential-10",
        [
            user("Count the lines of main.py with run_command, then save the number as a note with the title 'lines'."),
            *turn((call("run_command", command="wc -l < main.py"), "1284\n")),
        ],
        [RUN_COMMAND, SAVE_NOTE],
        call("save_note", title="lines", text="1284"),
    ),
]
_TOOL_ERRORS = [
    calling(
        "tool-errors-01",
        [
            user("Read notes.txt with read_file. If that fails, call report_problem tool='read_file' severity='high'."),
            *turn((call("read_file", path="notes.txt"), "Error: no such file: notes.txt")),
        ],
        [READ_FILE, REPORT_PROBLEM],
        call("report_problem", tool="read_file", severity="high"),
    ),
    calling(
        "tool-errors-02",
        [
            user("Read config.yaml. If it does not exist, read config.yml instead."),
            *turn((call("read_file", path="config.yaml"), "Error: no such file: config.yaml")),
        ],
        [READ_FILE],
        call("read_file", path="config.yml"),
    ),
    talking(
        "tool-errors-03",
        [
            user("What is the weather in Ulm? Use get_weather city='Ulm' once. If it fails, apologise with text only."),
            *turn((call("get_weather", city="Ulm"), "Error: the service is not available (503)")),
        ],
        [GET_WEATHER],
    ),
    calling(
        "tool-errors-04",
        [
            user("Set an alarm for half past six in the morning."),
            *turn((call("set_alarm", time="6:30"), "Error: time must have the form HH:MM, for example 06:30")),
        ],
        [SET_ALARM],
        call("set_alarm", time="06:30"),
    ),
    calling(
        "tool-errors-05",
        [
            user(
                "Run the tests with run_command command='make test'. If they time out, run them again with timeout=600."
            ),
            *turn((call("run_command", command="make test"), '{"error": "timeout", "after_seconds": 60}')),
        ],
        [RUN_COMMAND],
        call("run_command", command="make test", timeout=600),
    ),
    calling(
        "tool-errors-06",
        [
            user(
                "Write 'ok' to both files at once: write_file path='a.md' content='ok' and write_file path='b.md' "
                "content='ok'. Repeat a call that fails."
            ),
            *turn(
                (call("write_file", path="a.md", content="ok"), "written"),
                (call("write_file", path="b.md", content="ok"), "Error: the disk was busy, please try again"),
            ),
        ],
        [WRITE_FILE],
        call("write_file", path="b.md", content="ok"),
    ),
]
_THINKING = [
    calling(
        "thinking-01",
        "Think first: which is larger, 17*19 or 18*18? Then save the larger one: save_note title='larger' text='324'.",
        [SAVE_NOTE, CALCULATE],
        call("save_note", title="larger", text="324"),
        reasoning_effort="low",
    ),
    calling(
        "thinking-02",
        "Think about it and then wake me up one hour before 08:10: set_alarm time='07:10'.",
        [SET_ALARM, GET_WEATHER],
        call("set_alarm", time="07:10"),
        reasoning_effort="high",
    ),
    calling(
        "thinking-03",
        [
            user("First get_weather city='Split', then save_note title='Split' text='windy'."),
            *turn(
                (call("get_weather", city="Split"), "windy"),
                thinking="The user wants the weather first. I call get_weather for Split.",
            ),
        ],
        [GET_WEATHER, SAVE_NOTE],
        call("save_note", title="Split", text="windy"),
    ),
    talking(
        "thinking-04",
        [
            user("What is 12*12? Use calculate expression='12*12', then answer with text only."),
            *turn((call("calculate", expression="12*12"), "144"), thinking="I should use the calculator."),
        ],
        [CALCULATE],
    ),
]

SAMPLES = [*_SEQUENTIAL, *_TOOL_ERRORS, *_THINKING]
