"""All 42 faults, and the scenarios that play each."""

from __future__ import annotations

from collections.abc import Iterable

from interlingua.errors import UsageError
from interlingua.faults.apis import api_for_path
from interlingua.faults.checker.expectations import check_reply
from interlingua.faults.checker.scenario import FaultRow, Scenario, scenario_name_in
from interlingua.faults.scenarios import before_first_event as first
from interlingua.faults.scenarios import malformed_bytes as odd_bytes
from interlingua.faults.scenarios import malformed_replies as odd_replies
from interlingua.faults.scenarios import malformed_requests as requests
from interlingua.faults.scenarios import midstream
from interlingua.faults.scenarios import security as safety
from interlingua.faults.scenarios import slow_clients as clients
from interlingua.faults.scenarios.helpers import fault, healthy_upstream
from interlingua.faults.upstream.reply_writers import reply_writer_for
from interlingua.faults.upstream.script import ReceivedRequest, Script, send_response

__all__ = ["FAULT_ROWS", "NO_FAULT", "SCENARIOS", "scenarios_in_rows", "scripts_for"]

NO_FAULT = fault(0, "none", "Nothing is wrong.", "The reply comes through.", healthy_upstream, check_reply())
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
FAULT_ROWS = [
    FaultRow(number, title, [scenario for scenario in SCENARIOS if scenario.row == number])
    for number, title in _TITLES.items()
]
_BY_NAME = {scenario.name: scenario for scenario in (NO_FAULT, *SCENARIOS)}


def scenarios_in_rows(numbers: Iterable[int] | None) -> list[Scenario]:
    """The scenarios of these rows; of all, without any."""
    if numbers is None:
        return SCENARIOS
    selected = set(numbers)
    if unknown := selected - _TITLES.keys():
        raise UsageError(f"there is no row {min(unknown)}", "`interlingua faults list` has them: 1 to 42")
    return [scenario for scenario in SCENARIOS if scenario.row in selected]


def scripts_for(request: ReceivedRequest) -> list[Script]:
    """What the fault server does for this request: a book for `UpstreamServer`."""
    scenario = _BY_NAME.get(scenario_name_in(str(request.body.get("model"))))
    api = api_for_path(request.path)
    if scenario is None or api is None:
        return []
    if api not in scenario.apis:
        message = f"{scenario.name} is a fault of {' and '.join(scenario.apis)} only"
        return [
            [
                send_response(
                    "400 Bad Request",
                    reply_writer_for(api).error_body(message, "invalid_request_error", "not-this-api"),
                )
            ]
        ]
    writer = reply_writer_for(api)
    writer.is_streaming = bool(request.body.get("stream"))
    bearer_key = request.headers.get("authorization", "").removeprefix("Bearer ")
    writer.upstream_key = bearer_key or request.headers.get("x-api-key", "")
    return scenario.make_scripts(writer)
