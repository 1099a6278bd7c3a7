"""Catalog of the 42 faults and their scenarios."""

from __future__ import annotations

from collections.abc import Iterable

from interlingua.errors import UsageError
from interlingua.faults.apis import api_for_path
from interlingua.faults.checker.expectations import check_reply
from interlingua.faults.checker.scenario import FaultRow, Scenario, scenario_name_in
from interlingua.faults.scenarios import (
    before_first_event,
    malformed_bytes,
    malformed_replies,
    malformed_requests,
    midstream,
    security,
    slow_clients,
)
from interlingua.faults.scenarios.helpers import fault, healthy_upstream
from interlingua.faults.upstream.reply_writers import reply_writer_for
from interlingua.faults.upstream.script import ReceivedRequest, Script, send_response

__all__ = ["FAULT_ROWS", "NO_FAULT", "SCENARIOS", "scenarios_in_rows", "scripts_for"]

NO_FAULT = fault(0, "none", "No fault.", "The client receives the reply.", healthy_upstream, check_reply())
"""Baseline: a gateway must pass it before any fault is tested."""
SCENARIOS: list[Scenario] = sorted(
    [
        scenario
        for module in (
            before_first_event,
            midstream,
            malformed_bytes,
            malformed_replies,
            slow_clients,
            malformed_requests,
            security,
        )
        for scenario in module.SCENARIOS
    ],
    key=lambda scenario: scenario.row,
)
_TITLES = {
    1: "No response: the connection is refused or reset",
    2: "Headers, then no data",
    3: "A stream that stalls",
    4: "A connection that breaks in the middle of a reply",
    5: "A stream that ends early",
    6: "[DONE] without a finish reason",
    7: "Events after the finish reason",
    8: "An error as the first event of a 200 response",
    9: "An error in the middle of a stream",
    10: "Error statuses, with bodies of every kind",
    11: "Rate limits: 429 with retry-after",
    12: "Unusual but valid server-sent events",
    13: "Events that are not JSON",
    14: "A whole reply instead of a stream",
    15: "A stream instead of a whole reply",
    16: "Replies wrapped in an envelope",
    17: "Split, incomplete or invalid characters",
    18: "Very large replies, in one piece or in very many",
    19: "A client that does not read",
    20: "A client that disconnects",
    21: "Unusual HTTP from clients",
    22: "Compressed replies that were not requested",
    23: "Hostile request bodies",
    24: "A client that sends very slowly",
    25: "Unusable call ids and tool names",
    26: "Malformed sequences of call deltas",
    27: "The same call twice: as text and structured",
    28: "Markup that is only quoted",
    29: "A call although no tool was offered",
    30: "Reasoning and nothing else",
    31: "Runaway arguments",
    32: "Missing usage",
    33: "DNS, certificates, proxies, clocks",
    34: "Worker crashes and shutdown",
    35: "Headers that leak",
    36: "URLs in requests and redirects (SSRF)",
    37: "Leaked keys",
    38: "Terminal escapes, line breaks and scripts in messages",
    39: "Web pages that send requests to a local gateway",
    40: "Hostile tool schemas",
    41: "Retry storms",
    42: "A full or slow disk",
}
FAULT_ROWS = [
    FaultRow(number, title, [scenario for scenario in SCENARIOS if scenario.row == number])
    for number, title in _TITLES.items()
]
_BY_NAME = {scenario.name: scenario for scenario in (NO_FAULT, *SCENARIOS)}


def scenarios_in_rows(numbers: Iterable[int] | None) -> list[Scenario]:
    """Return the scenarios of these rows; all scenarios if `numbers` is None."""
    if numbers is None:
        return SCENARIOS
    selected = set(numbers)
    if unknown := selected - _TITLES.keys():
        raise UsageError(f"there is no fault {min(unknown)}", "the numbers are 1 to 42, see `interlingua faults list`")
    return [scenario for scenario in SCENARIOS if scenario.row in selected]


def scripts_for(request: ReceivedRequest) -> list[Script]:
    """Return the scripts for this request; [] for an unknown model or path. It is a `ScriptSource`."""
    scenario = _BY_NAME.get(scenario_name_in(str(request.body.get("model"))))
    api = api_for_path(request.path)
    if scenario is None or api is None:
        return []
    if api not in scenario.apis:
        message = f"{scenario.name} is available for {' and '.join(scenario.apis)} only"
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
