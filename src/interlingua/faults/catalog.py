"""All 42 faults, and the scenarios that play each."""

from __future__ import annotations

from collections.abc import Iterable

from interlingua.errors import UsageError
from interlingua.faults.apis import api_of
from interlingua.faults.checker.expectations import says
from interlingua.faults.checker.scenario import Row, Scenario, name_in
from interlingua.faults.scenarios import before_first_event as first
from interlingua.faults.scenarios import malformed_bytes as odd_bytes
from interlingua.faults.scenarios import malformed_replies as odd_replies
from interlingua.faults.scenarios import malformed_requests as requests
from interlingua.faults.scenarios import midstream
from interlingua.faults.scenarios import security as safety
from interlingua.faults.scenarios import slow_clients as clients
from interlingua.faults.scenarios.helpers import fault, good
from interlingua.faults.upstream.reply_writers import voice
from interlingua.faults.upstream.script import Asked, Script, answer

__all__ = ["NONE", "ROWS", "SCENARIOS", "rows_of", "scripts_for"]

NONE = fault(0, "none", "Nothing is wrong.", "The reply comes through.", good, says())
"""What a gateway must be able to pass before any fault is judged."""
SCENARIOS: list[Scenario] = sorted(
    [
        scenario
        for module in (first, midstream, odd_bytes, odd_replies, clients, requests, safety)
        for scenario in module.SCENARIOS
    ],
    key=lambda scenario: scenario.row,
)
_TITLES = {
    1: "No answer: the connection is refused or reset",
    2: "An answer that does not go on: headers, then silence",
    3: "A stream that stalls",
    4: "A connection that breaks inside a call",
    5: "A stream that just ends",
    6: "[DONE] without a finish reason",
    7: "More behind the finish",
    8: "An error as the first event of a 200",
    9: "An error in the middle of a stream",
    10: "Refusals, with bodies of every kind",
    11: "Come back later",
    12: "Events that are written otherwise",
    13: "Events that are no JSON",
    14: "A whole reply instead of a stream",
    15: "A stream instead of a whole reply",
    16: "Replies in an envelope",
    17: "Characters that are cut, halved or none",
    18: "Very much, in one piece or in very many",
    19: "A client that does not read",
    20: "A client that leaves",
    21: "Odd HTTP of clients",
    22: "Packed replies that nobody asked for",
    23: "Hostile request bodies",
    24: "A client that drips",
    25: "Ids and names of calls that cannot be used",
    26: "Pieces of calls in disorder",
    27: "A call that is told twice",
    28: "Markup that is only quoted",
    29: "A call where no tool was offered",
    30: "Thinking, and nothing else",
    31: "Arguments that run away",
    32: "No usage",
    33: "Names, certificates, proxies, clocks",
    34: "Workers that die, and the order to stop",
    35: "Headers that leak",
    36: "Addresses that a request or an upstream names",
    37: "Keys where they can be read",
    38: "Escapes, line ends and scripts in what is shown",
    39: "Web pages that ask a local gateway",
    40: "Schemas that are a trap",
    41: "Storms of retries",
    42: "A disk that is full or slow",
}
ROWS = [
    Row(number, title, [scenario for scenario in SCENARIOS if scenario.row == number])
    for number, title in _TITLES.items()
]
_BY_NAME = {scenario.name: scenario for scenario in (NONE, *SCENARIOS)}


def rows_of(numbers: Iterable[int] | None) -> list[Scenario]:
    """The scenarios of these rows; of all, without any."""
    if numbers is None:
        return SCENARIOS
    wanted = set(numbers)
    if strange := wanted - _TITLES.keys():
        raise UsageError(f"there is no row {min(strange)}", "`interlingua faults list` has them: 1 to 42")
    return [scenario for scenario in SCENARIOS if scenario.row in wanted]


def scripts_for(asked: Asked) -> list[Script]:
    """What the fault server does for this request: a book for `UpstreamServer`."""
    scenario = _BY_NAME.get(name_in(str(asked.body.get("model"))))
    api = api_of(asked.path)
    if scenario is None or api is None:
        return []
    if api not in scenario.apis:
        message = f"{scenario.name} is a fault of {' and '.join(scenario.apis)} only"
        return [[answer("400 Bad Request", voice(api).refusal(message, "invalid_request_error", "not-this-api"))]]
    say = voice(api)
    say.streams = bool(asked.body.get("stream"))
    shown = asked.headers.get("authorization", "").removeprefix("Bearer ")
    say.key = shown or asked.headers.get("x-api-key", "")
    return scenario.plays(say)
