"""`interlingua faults serve`: run an upstream that injects faults."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from interlingua.cli.common import console
from interlingua.errors import BadInput, UsageError

if TYPE_CHECKING:
    from interlingua.faults.upstream.script import ReceivedRequest

DESCRIPTION = """\
Listens on loopback and serves Chat Completions, Messages and Responses. The
model id selects the fault, for example fault-04-reset-inside-call.

Some faults occur only on the first request of a run. To begin a new run, append
`--` and any text to the id, for example fault-01-reset-once--7.

Each request is logged to standard output as a line of JSON."""
EPILOG = """\
examples:
  interlingua faults serve
  interlingua faults serve --port 0
  curl -sN http://127.0.0.1:8585/v1/chat/completions \\
      -H 'content-type: application/json' \\
      -d '{"model": "fault-05-end-inside-call", "stream": true, "messages": []}'
"""
DEFAULT_PORT = 8585
_SETTINGS_TEMPLATE = (
    'upstreams:\n  {{faults: {{url: "{url}", key: sk-any-0123456789abcdef,'
    "\n    timeouts: {{first_event: 5, idle: 5}}}}}}"
)
_STARTUP_MESSAGE = """\
interlingua: {count} fault scenarios at {url}
(list: `interlingua faults list`; stop: Ctrl-C)

Use it as the upstream of a gateway:

  echo '{settings}' > faults.yaml
  interlingua serve --config faults.yaml

  (its timeouts are shorter than --patience of the check; LiteLLM:
  model_list: [{{model_name: "*", litellm_params:
    {{model: "openai/*", api_base: {url}, api_key: none}}}}])

Then test the gateway:

  interlingua faults check http://127.0.0.1:8484 --faults {base}

Or test an agent:

  ANTHROPIC_BASE_URL={base} ANTHROPIC_AUTH_TOKEN=any \\
    ANTHROPIC_MODEL=fault-09-error-inside-call claude
  OpenAI(base_url="{url}", api_key="any")
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=int,
        default=DEFAULT_PORT,
        metavar="N",
        help=f"port to listen on; default: {DEFAULT_PORT}; 0: any free port",
    )


def run(args: argparse.Namespace) -> None:
    from interlingua.faults.catalog import SCENARIOS, scripts_for
    from interlingua.faults.upstream.server import UpstreamServer

    if not 0 <= args.port <= 65535:
        raise UsageError(f"{args.port} is not a valid port", "use a --port from 0 to 65535")
    try:
        server = UpstreamServer(args.port, scripts_for, _log_request)
    except OSError as error:
        hint = "choose another --port, or 0 for any free port"
        raise BadInput(f"cannot listen on port {args.port}: {error.strerror}", hint) from error
    base = server.url.removesuffix("/v1")
    settings = _SETTINGS_TEMPLATE.format(url=server.url)
    console.print_stderr(_STARTUP_MESSAGE.format(count=len(SCENARIOS), url=server.url, base=base, settings=settings))
    try:
        while True:
            time.sleep(3600)
    finally:
        server.stop()


def _log_request(request: ReceivedRequest) -> None:
    seconds = round(time.monotonic() - request.received_at, 3)
    fields = {
        "model": str(request.body.get("model"))[:200],
        "path": request.path[:200],
        "stream": request.body.get("stream"),
    }
    console.write_json_line(
        {**fields, "sent": request.bytes_sent, "seconds": seconds, "client_left": request.client_left_at is not None}
    )
