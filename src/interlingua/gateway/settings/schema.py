"""Schema of the settings: the types that a settings file is converted to, with the default values.

Field names are the names that users write. The docstring of a field is its user documentation: it is printed by
`interlingua config schema` and in docs/reference/settings.md. This module reads no file: `loader` does, and reports
errors with file and line.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from interlingua.core.options import ArgumentsPolicy, Delivery, Limits, ReasoningPolicy
from interlingua.core.wire_traits import WireName
from interlingua.translation.constraints import Strictness

__all__ = [
    "Api",
    "Capture",
    "Cassettes",
    "ClientLimits",
    "EmptyPolicy",
    "Inspect",
    "Log",
    "Model",
    "RequestLimits",
    "Rest",
    "Retries",
    "Secret",
    "Settings",
    "State",
    "Timeouts",
    "Upstream",
    "WebFetch",
    "WebSearch",
]

Api: TypeAlias = WireName
Secret: TypeAlias = Annotated[str, Meta(extra_json_schema={"writeOnly": True})]
"""Text that is never printed and never logged."""
EmptyPolicy: TypeAlias = Literal["keep", "retry"]
Seconds: TypeAlias = Annotated[float, Meta(gt=0)]


class Timeouts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    connect: Seconds = 10
    """Seconds to open a connection to the upstream, including the TLS handshake."""
    first_event: Seconds = 120
    """Seconds from sending the request to the first event of a stream. The client receives keep-alive comments while it
    waits."""
    idle: Seconds = 120
    """Seconds between two chunks of a stream."""
    total: Seconds = 3600
    """Seconds for a complete reply, from sending the request to the last byte."""
    stream: Seconds = 14_400
    """Seconds for a stream, from its first content to the last byte. The time from sending the request to the first
    content has a limit of its own, of the same length. Default: four hours."""


class Retries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Retries at the same upstream. A request is retried only before the first output of the upstream. Responses with
    4xx are not retried, except 429 with a short `retry-after`."""

    attempts: Annotated[int, Meta(ge=1, le=10)] = 2
    """Maximum number of attempts per request and upstream, including the first one. 1 disables retries."""
    backoff: Seconds = 0.5
    """Seconds to wait before the second attempt. The delay doubles with each further attempt, with random jitter."""
    longest: Seconds = 10
    """Longest delay before a retry, in seconds. If the upstream requests a longer one (`retry-after`), the gateway does
    not retry and forwards that delay to the client."""
    budget: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """Retry budget: the number of retries allowed per request to this upstream, of all clients (0.1: one retry for
    ten requests). A burst of ten retries, and one more each second, are always allowed. If the clients together have
    used them up, each client key still has ten retries, and one more in ten seconds. The budget keeps retries from
    adding load to an upstream that already fails."""


class Rest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Circuit breaker, per upstream and model. While the circuit is open, the model receives no requests. Failed
    connections count for all clients. Other failures, such as 5xx and timeouts, count only for the client key of the
    request, because a request can cause them. Responses with 4xx do not count. A success of any client closes the
    circuit for all."""

    after: Annotated[int, Meta(ge=0)] = 10
    """Number of consecutive failed attempts that open the circuit, over all workers. One request can make several
    attempts. 0 disables the circuit breaker."""
    seconds: Seconds = 5
    """Seconds that the circuit stays open. Meanwhile requests go to the `fallback` models; without one, the client
    receives 503 with `retry-after`. After that time a single request probes the model."""


class Upstream(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str
    """Base URL of the upstream, including the API version: https://openrouter.ai/api/v1"""
    api: Api = "openai-chat"
    """Protocol of the upstream."""
    key: Secret = ""
    """API key of the upstream, usually from a variable: ${OPENROUTER_API_KEY}"""
    passthrough: bool = False
    """Send the API key of the client to the upstream instead of `key`, or the client's login at claude.ai."""
    headers: dict[str, str] = {}
    """Additional HTTP headers for every request to this upstream."""
    extra: dict[str, Any] = {}
    """Additional fields for every request body, such as OpenRouter's `provider`."""
    dialect: str = "auto"
    """Dialect in which the models of this upstream write tool calls. A dialect name; auto: chosen by the model id;
    detect: detected in the text of the reply."""
    profile: str = "auto"
    """Profile of the upstream: one of the profiles built into `interlingua`. auto: chosen by the URL; if that is
    unknown, by what the server answers to GET requests for its model list and its version. any: no profile."""
    ids: Literal["auto", "any", "functions", "nine"] = "auto"
    """Format of tool call ids in the conversation history that the upstream accepts. auto: as in the profile; any: ids
    are sent unchanged; functions: functions.NAME:N, as for Kimi; nine: nine letters and digits, as for Mistral."""
    server_tools: Literal["auto", "upstream"] = "auto"
    """Who runs web search, web fetch and tool search, which a client leaves to the server, if this upstream has the
    client's API. auto: the gateway, unless the profile states that the upstream does; a tool search is left to an
    unknown upstream, too. upstream: the upstream, which gets these tools unchanged. Upstreams of other APIs never get
    them."""
    count_tokens: Literal["auto", "upstream", "estimate"] = "auto"
    """Source of the result when a client requests a token count. upstream: the gateway sends a token count request to
    the upstream if the API has an endpoint for it, and estimates if that fails. estimate: the gateway always estimates.
    auto: like `upstream` if `api` is anthropic-messages, otherwise like `estimate`."""
    ca: str = ""
    """Path of a PEM file with the CA certificates that sign the certificate of this upstream, for a private CA. If
    empty, the certificates of the system or of SSL_CERT_FILE are used."""
    timeouts: Timeouts = Timeouts()
    """Timeouts for requests to this upstream, in seconds."""
    retries: Retries = Retries()
    """Retries of failed requests to this upstream."""
    rest: Rest = Rest()
    """Circuit breaker for this upstream."""


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Route for a model id of clients. A setting that is missing here is taken from the upstream or from the
    gateway."""

    upstream: str
    """Name of the upstream, as in `upstreams`."""
    model: str = ""
    """Model id at the upstream. If empty, the id that the client sent. A `*` is replaced by the text that the `*` of
    this entry matched."""
    fallback: list[str] = []
    """Other ids of `models`, tried in order if this model fails before its first output."""
    fallback_on: list[Annotated[int, Meta(ge=400, le=499)]] = []
    """4xx statuses of the upstream that also lead to the `fallback` models, such as 401, 402 or 404. Other 4xx
    statuses, except 429, count as errors of the client and are returned to it."""
    dialect: str = ""
    """Dialect of this model: a dialect name, auto or detect. If empty, as set for the upstream."""
    prefill: str = ""
    """Text that the prompt template has already written at the start of the reply, such as <think>."""
    vision: bool | None = None
    """True if the model accepts images. false: the gateway sends a note in the place of each image. If missing, known
    text-only models count as such, and a model whose server refuses an image does so from then on."""
    delivery: Delivery | None = None
    """Overrides `delivery` of the gateway for this model."""
    arguments: ArgumentsPolicy | None = None
    """Overrides `arguments` of the gateway for this model."""
    reasoning: ReasoningPolicy | None = None
    """Overrides `reasoning` of the gateway for this model."""
    empty: EmptyPolicy | None = None
    """Overrides `empty` of the gateway for this model."""
    strict: Strictness | None = None
    """Overrides `strict` of the gateway for this model."""
    timeouts: Timeouts | None = None
    """Timeouts for this model, in seconds. They replace all timeouts of the upstream, also those that are not listed
    here."""
    extra: dict[str, Any] = {}
    """Additional fields for every request body. They override `extra` of the upstream."""


class RequestLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    body: Annotated[int, Meta(ge=1024)] = 32 * 1024 * 1024
    """Maximum size of a request body, in bytes. A compressed body (gzip or deflate) is measured after decompression. It
    may have at most 100 times its compressed size, or 1 MiB if that is more. Default: 32 MiB."""
    reply: Annotated[int, Meta(ge=1024)] = 64 * 1024 * 1024
    """Maximum size of a non-streamed reply of an upstream, in bytes. Default: 64 MiB."""
    memory: Annotated[int, Meta(ge=1024 * 1024)] = 1024 * 1024 * 1024
    """Memory budget in bytes: what all requests in progress may hold together, over all workers, as bodies and as
    buffered replies. The memory of decoded JSON is estimated; a text needs about three times its size. Beyond the
    budget, requests receive 503 with `retry-after`, and streams end with an error. Requests that hold up to 64 KiB are
    never refused. Default: 1 GiB."""
    conversations: Annotated[int, Meta(ge=0)] = 32 * 1024 * 1024
    """Memory per worker for conversations of earlier requests, in bytes. An agent sends its whole conversation with
    each request; a worker that has it in memory translates only what is new. The conversations of a client help no
    other client. The least recently used ones are dropped first. 0: no conversation is kept. Default: 32 MiB."""
    connections: Annotated[int, Meta(ge=1)] = 8192
    """Maximum number of open client connections, over all workers. Further connections receive 503 with `retry-after`,
    except for health checks. Each worker uses a lower number if it may not open enough files (`ulimit -n`)."""
    head: Seconds = 10
    """Seconds within which a client must send the request line and headers. The time starts with the first byte of the
    request; on a new connection, when the connection is accepted."""
    rate: Annotated[int, Meta(ge=0)] = 256
    """Minimum rate at which a client must send a request body, in bytes per second. It applies after the first ten
    seconds. 0 disables the check."""
    streams: Annotated[int, Meta(ge=1)] = 4096
    """Maximum number of concurrent requests, of all clients together and over all workers, and of concurrent token
    counts. Requests for a complete reply count like those for a stream. Further requests receive 529 with
    `retry-after`. Each worker uses a lower number if it may not open enough files (`ulimit -n`): a request needs
    two."""
    send: Seconds = 120
    """Seconds within which a client must send its complete request body. Also the time within which it must read the
    data sent to it; after that the gateway treats it as disconnected."""
    websocket: Seconds = 3600
    """Seconds after which a WebSocket is closed, with an error at which clients open a new one. A response in progress
    is finished before. Default: 60 minutes, as the API defines it."""


class ClientLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits for each key in `keys`, over all workers. Without `keys`, all clients share them. A request over a limit
    receives 429 with `retry-after`. A token count is a request if the upstream counts. 0: no limit."""

    requests: Annotated[int, Meta(ge=0)] = 0
    """Maximum number of concurrent requests, for a stream or for a complete reply."""
    streams: Annotated[int, Meta(ge=0)] = 0
    """Maximum number of concurrent requests for a stream (`stream: true`). Unlike `limits.streams`, it does not count
    requests for a complete reply."""
    requests_per_minute: Annotated[int, Meta(ge=0)] = 0
    """Maximum number of requests in a minute. Requests over a limit do not count."""
    tokens_per_minute: Annotated[int, Meta(ge=0)] = 0
    """Maximum number of tokens in a minute, input and output, as upstreams report them or estimated. While a request is
    in progress, it counts with its estimated input and 1,000 tokens of output. Longer replies are complete even if they
    exceed the limit. Then the client has to wait."""


class Capture(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    dir: str
    """Directory for the captures, one file per exchange. It is created if it does not exist, readable by its owner
    only. A directory that another user (except root) owns or can write to is refused."""
    keep: Annotated[int, Meta(ge=1)] = 1000
    """Maximum number of capture files. The oldest files are deleted first."""


class Inspect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The inspector: a web page at `/inspector` that shows the exchanges of all workers. A process of its own keeps
    them, so that looking at them does not slow down streams."""

    enabled: bool = False
    """Record exchanges and serve the page."""
    memory: Annotated[int, Meta(ge=1024 * 1024)] = 256 * 1024 * 1024
    """Memory for exchanges, in bytes. The oldest ones are dropped first. Default: 256 MiB."""
    keep: str = ""
    """Path of an SQLite file in which finished exchanges are kept over restarts, without secrets. It is created for its
    owner only. If empty, exchanges are kept in memory only."""
    size: Annotated[int, Meta(ge=1024 * 1024)] = 1024 * 1024 * 1024
    """Maximum size of the exchanges in the SQLite file, in bytes. The oldest ones are deleted first. Default: 1 GiB."""
    key: Secret = ""
    """Key for the page, which shows the conversations of all clients. If empty, the only key in `keys`; without `keys`,
    the page needs none. With several `keys`, it is required."""


class Cassettes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Recorded exchanges that replay without a model, a key or a network. A recording serves clients of every API."""

    dir: str
    """Folder with one file per conversation, or one file (`.yaml`) for all of them."""
    mode: Literal["record", "replay", "hybrid"] = "replay"
    """record: every request goes to its upstream, and its reply is recorded; earlier recordings of the same
    conversation are replaced. replay: every reply comes from a recording; a request without one fails, and no upstream
    is needed. hybrid: a request without a recording goes to its upstream and is recorded."""
    ignore: list[str] = []
    """Parts of a request that do not count when it is compared with recordings: model, system, tools,
    tool_descriptions, tool_choice, max_tokens, temperature, or the name of any other field."""
    replace: dict[str, str] = {}
    """Regular expressions and their replacements, for every text of a request before it is compared: paths, ids,
    times."""
    defaults: bool = True
    """Leave out what changes from run to run: the current date in system prompts, Claude Code's billing line, the wall
    time in results of the shell tools of Codex and Kimi Code, and fields such as service_tier."""
    cut: str = "recorded"
    """Pieces in which a replayed reply arrives: recorded, whole, event, character, byte or random. A seed for random
    cuts follows a colon: random:7"""
    speed: Annotated[float, Meta(ge=0)] = 0
    """Speed of a replay. 0: at once. 1: as recorded. 2: twice as fast."""
    fault: str = ""
    """Fault that is mixed into replayed replies, by its name in `interlingua faults list --recorded`: reset-in-text.
    With @2, only the second request gets it."""
    stall: Seconds = 5
    """Seconds after which a replayed reply counts as stalled, for faults that stall it."""


class State(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Responses that the gateway stores for clients of the Responses API, so that they can continue them with
    `previous_response_id`, run them in the background and fetch them by id. A request with `store: false`, and all
    requests of the other APIs, store nothing."""

    store: Literal["sqlite", "postgresql", "off"] = "sqlite"
    """sqlite: in one file, shared by all workers of this gateway. postgresql: in a database that several gateways
    share; they need the same `seal_key`, and the extra `interlingua[postgresql]`. off: nothing is stored."""
    path: str = ""
    """Path of the SQLite file. It is created for its owner only. If empty, responses.db in the state directory of the
    current user."""
    url: Secret = ""
    """URL of the PostgreSQL database: postgresql://user:password@host/database"""
    days: Annotated[float, Meta(gt=0)] = 30
    """Days after which a response is deleted, counted from the last request that stored or continued it."""
    size: Annotated[int, Meta(ge=1024 * 1024)] = 1024 * 1024 * 1024
    """Maximum size of all stored responses, in bytes. The gateway deletes those that were not used for the longest
    time. Default: 1 GiB."""


class WebSearch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Search engine for clients that leave web search to the server: Claude Code's WebSearch, `web_search` of the
    Responses API. Queries that the model writes are sent to it."""

    engine: Literal["off", "searxng", "brave", "tavily", "url", "command"] = "off"
    """searxng: a SearXNG server with the JSON format enabled. brave, tavily: these services, with a `key`. url: any
    server with a JSON API, see `url`. command: a program, see `command`. off: clients of the Messages API get the error
    `unavailable`, and those of the Responses API are not offered a search."""
    url: str = ""
    """searxng: URL of the server. url: URL with `{query}`; the response is a list of objects, or an object with such a
    list as `results`, with `url` or `link`, `title`, and `content`, `snippet` or `description`. brave, tavily: another
    URL than that of the service."""
    command: list[str] = []
    """command: program and arguments, run without a shell. `{query}` in an argument is replaced by the query, without
    dashes at its beginning. It writes the same JSON to standard output as described for `url`. Of the gateway's
    environment it gets PATH, HOME, the language and the proxies; `key` is in SEARCH_KEY."""
    key: Secret = ""
    """API key of the service. Write ${NAME} for an environment variable. With `url` it is sent as a bearer token."""
    results: Annotated[int, Meta(ge=1, le=20)] = 8
    """Maximum number of results of a search."""
    timeout: Seconds = 15
    """Seconds for one search."""


class WebFetch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pages that the gateway fetches for clients that leave it to the server: `web_fetch_…` of the Messages API."""

    enabled: bool = False
    """Fetch pages that the conversation mentions. If false, clients get the error `unavailable`."""
    private: list[str] = []
    """Host names and addresses that may be fetched although they are not on the public internet, such as a server with
    internal documentation. All other private addresses are refused, also behind a redirect."""
    size: Annotated[int, Meta(ge=1024)] = 2 * 1024 * 1024
    """Maximum size of a page in bytes, uncompressed. Default: 2 MiB."""
    timeout: Seconds = 20
    """Seconds for one page, with all redirects."""


class Log(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: Literal["text", "json"] = "text"
    """text: one readable line per entry. json: one JSON object per line."""
    level: Literal["error", "info", "debug"] = "info"
    """Log level. error: errors only. info: also one line per request. debug: also request and reply bodies, of large
    ones the first 32 KiB of each chunk. Secrets are redacted at every level."""
    file: str = ""
    """Path of the log file. If empty, the log goes to standard error. At 10 MiB the file is rotated to FILE.1, and
    FILE.1 to FILE.2; older files are deleted."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    host: str = "127.0.0.1"
    """Address that the gateway listens on. If it is not a loopback address, `keys` are required."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8484
    """TCP port that the gateway listens on. 0: any free port."""
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    """Number of worker processes that share the port. They act as one gateway: all limits, retry budgets and circuit
    breakers apply to all workers together."""
    demo: bool = False
    """Add the demo models demo/<dialect>, one for every dialect. They need no API key and no network."""
    demo_pace: Annotated[float, Meta(ge=0)] = 0.004
    """Seconds between two tokens of a demo model, so that streaming is visible. 0: no delay."""
    upstreams: dict[str, Upstream] = {}
    """Model servers that the gateway can send requests to, each under a name of your choice."""
    default: str = ""
    """Name of the upstream for model ids that match neither `models` nor `tiers`. If empty and there is only one
    upstream, that one."""
    api_defaults: dict[Api, str] = {}
    """Names of upstreams by the API of the client, for model ids that match neither `models` nor `tiers`:
    `anthropic-messages: anthropic`. They take precedence over `default`."""
    models: dict[str, Model | str] = {}
    """Model ids of clients and their routes. A value that is a text is an alias for another id of this table. `*` in an
    id matches any text."""
    tiers: dict[Literal["opus", "sonnet", "haiku", "fable"], str] = {}
    """Models for Claude's tiers. A tier matches its name alone, and every id that contains both `claude` and the
    name. The model list has it as `claude-<tier>`, because Claude Code shows only such ids."""
    overrides: dict[str, str] = {}
    """Dialects by model id at the upstream, where `*` matches any text: `"*kimi*": kimi_k2`. They take precedence over
    every other `dialect` setting."""
    dialects: dict[str, dict[str, Any]] = {}
    """Custom dialects by name. The fields are those of a dialect file without `name`; `summary` is optional."""
    delivery: Delivery = "stream"
    """Delivery of tool calls. stream: arguments are sent to the client as they arrive. whole: a call is sent when it is
    complete and its arguments are a JSON object."""
    arguments: ArgumentsPolicy = "repair"
    """Handling of arguments that are almost JSON, such as a raw line break in a string. repair: corrected, if that
    cannot change their meaning. exact: sent as the model wrote them."""
    reasoning: ReasoningPolicy = "keep"
    """Handling of the reasoning (thinking) of a model. keep: sent as reasoning. as_content: sent as text. drop: not
    sent."""
    empty: EmptyPolicy = "keep"
    """Handling of a reply without text and without tool calls. keep: sent as it is. retry: the request is sent once
    more, unless a part of the reply has been sent to the client; streamed reasoning counts as a part."""
    strict: Strictness = "auto"
    """Constraint of tool calls, for upstreams whose engine can force the model to write valid calls (the profiles vllm
    and sglang). auto: if the client requires a call or names a tool, or if a tool is strict. always: whenever there are
    tools. off: never. If the upstream refuses the constraint, requests are sent without it from then on."""
    history: Literal["mend", "strict"] = "mend"
    """Handling of an inconsistent conversation history, such as a tool call without a result. mend: the gateway repairs
    it. strict: the gateway rejects the request and reports the position."""
    limits: RequestLimits = RequestLimits()
    """Limits for requests, replies and connections."""
    client_limits: ClientLimits = ClientLimits()
    """Limits for each client."""
    keys: dict[str, Secret] | list[Secret] = []
    """API keys that clients may use, each under a name: `{alice: "${ALICE_KEY}", ci: "${CI_KEY}"}`. Log and metrics
    have the name, never the key. In a list without names they are called key-1, key-2 and so on. If empty, no key is
    required; that is allowed only on a loopback address."""
    hosts: list[str] = []
    """Additional host names of this gateway. A request with any other `Host` header is rejected, which protects against
    requests from web pages (DNS rebinding)."""
    seal_key: Secret = ""
    """Key that encrypts reasoning which clients receive and send back, of at least 16 characters. If empty, a key is
    generated and stored for the current user. All machines behind one load balancer need the same key. With several
    `keys`, a client cannot read or send back the reasoning of another."""
    capture: Capture | None = None
    """Record every exchange in a file. Captures contain complete conversations; API keys are redacted. If not set,
    nothing is recorded."""
    inspect: Inspect = Inspect()
    """The inspector."""
    cassettes: Cassettes | None = None
    """Record exchanges, or replay them instead of asking a model."""
    state: State = State()
    """Responses that the gateway stores."""
    websocket: bool = True
    """Accept WebSockets for the Responses API (`GET /v1/responses`), which Codex uses. If false, clients get 426 and
    send their requests by POST."""
    web_search: WebSearch = WebSearch()
    """Web search that the gateway runs for clients."""
    web_fetch: WebFetch = WebFetch()
    """Fetching of web pages that the gateway runs for clients."""
    log: Log = Log()
    """Log of the gateway."""
    keepalive: Seconds = 10
    """Seconds without data on a stream after which the client receives a keep-alive comment (a `ping` event in the
    Messages API), and between two of them. The actual delay can be up to twice as long."""
    drain: Seconds = 30
    """Seconds that open streams have to finish when the gateway shuts down."""
    watchdog: Annotated[float, Meta(ge=0)] = 30
    """Seconds after which a worker that does not respond counts as hung. With several workers its stack is logged, and
    it is killed and replaced. A single worker only prints its stack to standard error. 0 disables the check."""
    otel: bool = False
    """Trace each request with OpenTelemetry. The exporter is configured with the OTEL_* environment variables."""

    @property
    def client_keys(self) -> dict[str, str]:
        """The keys of clients by name."""
        if isinstance(self.keys, dict):
            return self.keys
        return {f"key-{number}": key for number, key in enumerate(self.keys, 1)}
