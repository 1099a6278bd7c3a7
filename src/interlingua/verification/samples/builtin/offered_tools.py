"""Tools that the samples of the built-in set offer."""

from __future__ import annotations

from interlingua.verification.samples.builtin.sample_builder import array, enum, integer, number, obj, string, tool

__all__ = [
    "CALCULATE",
    "CONVERT_CURRENCY",
    "CREATE_EVENT",
    "DELETE_FILE",
    "GET_STOCK_PRICE",
    "GET_TIME",
    "GET_WEATHER",
    "LIST_FILES",
    "MANY_TOOLS",
    "READ_FILE",
    "REPORT_PROBLEM",
    "RUN_COMMAND",
    "SAVE_NOTE",
    "SEARCH_CODE",
    "SEND_EMAIL",
    "SET_ALARM",
    "TRANSLATE_TEXT",
    "WRITE_FILE",
]

GET_WEATHER = tool(
    "get_weather",
    "Return the current weather of a city.",
    obj({"city": string("Name of the city"), "unit": enum("celsius", "fahrenheit")}, ["city"]),
)
GET_TIME = tool("get_time", "Return the current time. Takes no arguments.", obj({}))
SET_ALARM = tool(
    "set_alarm",
    "Set an alarm.",
    obj({"time": string("Time of day, HH:MM"), "label": string("Text to show")}, ["time"]),
)
SEND_EMAIL = tool(
    "send_email",
    "Send an e-mail.",
    obj(
        {"to": string("Address"), "subject": string(), "body": string(), "cc": array(string())},
        ["to", "subject", "body"],
    ),
)
CREATE_EVENT = tool(
    "create_event",
    "Add an event to the calendar.",
    obj(
        {
            "title": string(),
            "start": string("Date and time, YYYY-MM-DDTHH:MM"),
            "minutes": integer("Length of the event", minimum=1),
        },
    ),
)
CONVERT_CURRENCY = tool(
    "convert_currency",
    "Convert an amount of money.",
    obj({"amount": number(), "source": string("Currency code"), "target": string("Currency code")}),
)
CALCULATE = tool("calculate", "Evaluate an arithmetic expression.", obj({"expression": string()}))
GET_STOCK_PRICE = tool("get_stock_price", "Return the price of a share.", obj({"symbol": string("Ticker symbol")}))
TRANSLATE_TEXT = tool(
    "translate_text",
    "Translate a text.",
    obj({"text": string(), "language": string("Language code of the translation, such as de")}),
)
READ_FILE = tool(
    "read_file",
    "Return the text of a file.",
    obj({"path": string(), "first_line": integer(minimum=1), "last_line": integer(minimum=1)}, ["path"]),
)
WRITE_FILE = tool("write_file", "Write a text to a file.", obj({"path": string(), "content": string()}))
DELETE_FILE = tool("delete_file", "Delete a file.", obj({"path": string()}))
LIST_FILES = tool(
    "list_files", "List the files of a folder.", obj({"folder": string(), "pattern": string()}, ["folder"])
)
SEARCH_CODE = tool(
    "search_code",
    "Search the source files for a regular expression.",
    obj({"pattern": string(), "folder": string(), "ignore_case": {"type": "boolean"}}, ["pattern"]),
)
RUN_COMMAND = tool(
    "run_command",
    "Run a shell command and return its output.",
    obj({"command": string(), "timeout": integer("Seconds", minimum=1)}, ["command"]),
)
SAVE_NOTE = tool("save_note", "Save a note.", obj({"title": string(), "text": string()}))
REPORT_PROBLEM = tool(
    "report_problem",
    "Report that a task cannot be done.",
    obj({"tool": string("Name of the tool that failed"), "severity": enum("low", "high")}),
)
_ORDER_PIZZA = tool("order_pizza", "Order a pizza.", obj({"kind": string(), "size": enum("small", "medium", "large")}))
_FIND_TRAIN = tool("find_train", "Find train connections.", obj({"origin": string(), "destination": string()}))
_PLAY_MUSIC = tool("play_music", "Play a song.", obj({"title": string(), "artist": string()}, ["title"]))
_ADD_CONTACT = tool("add_contact", "Add a person to the address book.", obj({"name": string(), "phone": string()}))
_SET_LIGHT = tool(
    "set_light", "Dim the light of a room.", obj({"room": string(), "percent": integer(minimum=0, maximum=100)})
)
_GET_NEWS = tool("get_news", "Return the headlines on a topic.", obj({"topic": string()}))

MANY_TOOLS = [
    GET_WEATHER,
    SET_ALARM,
    SEND_EMAIL,
    CREATE_EVENT,
    CONVERT_CURRENCY,
    CALCULATE,
    GET_STOCK_PRICE,
    TRANSLATE_TEXT,
    READ_FILE,
    WRITE_FILE,
    LIST_FILES,
    SEARCH_CODE,
    RUN_COMMAND,
    SAVE_NOTE,
    _ORDER_PIZZA,
    _FIND_TRAIN,
    _PLAY_MUSIC,
    _ADD_CONTACT,
    _SET_LIGHT,
    _GET_NEWS,
]
