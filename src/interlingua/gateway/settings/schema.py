"""What may be set, with its defaults: the types that a settings file is read into.

Names are as users write them, and each docstring is what `interlingua config schema` tells of it. Nothing here reads a
file: `settings_file` does, and tells the line of what is wrong.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from interlingua.core.options import Delivery, Limits, ReasoningPolicy

__all__ = [
    "Api",
    "Capture",
    "EmptyPolicy",
    "Log",
    "Model",
    "RequestLimits",
    "Rest",
    "Retries",
    "Secret",
    "Settings",
    "Timeouts",
    "Upstream",
]

Api: TypeAlias = Literal["openai-chat", "anthropic-messages", "openai-responses"]
Secret: TypeAlias = Annotated[str, Meta(extra_json_schema={"writeOnly": True})]
"""Never shown and never logged."""
EmptyPolicy: TypeAlias = Literal["keep", "retry"]
Seconds: TypeAlias = Annotated[float, Meta(gt=0)]


class Timeouts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    connect: Seconds = 10
    """For a connection, TLS included."""
    first_event: Seconds = 120
    """From the request to the first event of a stream; clients get keep-alive comments meanwhile."""
    idle: Seconds = 120
    """Between two pieces of a stream."""
    total: Seconds = 3600
    """For a whole reply, from the request to its last byte."""


class Retries(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often the same upstream is asked again before it has said anything: never behind that, and never for 4xx but
    429 with a short wait."""

    attempts: Annotated[int, Meta(ge=1, le=10)] = 2
    """How often an upstream is asked in all."""
    backoff: Seconds = 0.5
    """The wait before the second attempt, doubled for each further one, with jitter."""
    longest: Seconds = 10
    """The longest wait that is made here. If the upstream asks for a longer one, the client is told it."""
    budget: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """How many further attempts there may be for each request to this upstream, over all clients; ten at once, and one
    a second, are free. More would only add to its trouble."""


class Rest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a model of an upstream that fails is left alone: each is judged for itself, and 4xx are no failures."""

    after: Annotated[int, Meta(ge=0)] = 10
    """How many attempts fail in a row before; a request may take several. 0: it never is left alone."""
    seconds: Seconds = 5
    """For how long: `fallback` answers meanwhile, or the client gets 503 with retry-after. Then one request tries."""


class Upstream(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str
    """Its base URL, up to and with the version: https://openrouter.ai/api/v1"""
    api: Api = "openai-chat"
    """What it speaks."""
    key: Secret = ""
    """Its key: ${OPENROUTER_API_KEY}"""
    passthrough: bool = False
    """Whether the client's own key is sent to it instead."""
    headers: dict[str, str] = {}
    """Further headers for it."""
    extra: dict[str, Any] = {}
    """Further fields of every request body, such as OpenRouter's `provider`."""
    dialect: str = "auto"
    """How its models write calls: a name, auto (by the model's id) or detect (by the text itself)."""
    profile: str = "auto"
    """Which upstream of `interlingua`'s table it is like; auto: by its URL."""
    ids: Literal["auto", "any", "functions", "nine"] = "auto"
    """What ids of past calls it wants: as they are, Kimi's functions.NAME:N, or Mistral's nine letters and digits."""
    count_tokens: Literal["auto", "upstream", "estimate"] = "auto"
    """Who counts the tokens of a request that is not to be answered. upstream: it is asked first, if its API has a way
    to. estimate: it is never asked. auto: it is asked if it speaks anthropic-messages."""
    ca: str = ""
    """A file with the certificates (PEM) that it is trusted by, if it has one of your own. Without it: as the system,
    or SSL_CERT_FILE, says."""
    timeouts: Timeouts = Timeouts()
    """How long is waited for it."""
    retries: Retries = Retries()
    """How often it is asked."""
    rest: Rest = Rest()
    """When it is left alone."""


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client's model id stands for. What is not set here is as its upstream, or the whole gateway, has it."""

    upstream: str
    """Who is asked: a name among `upstreams`."""
    model: str = ""
    """Its id there; without one, the client's. A `*` in it is what the `*` of the client's id has met."""
    fallback: list[str] = []
    """Other ids of this table, asked in turn if it fails before the first word."""
    fallback_on: list[Annotated[int, Meta(ge=400, le=499)]] = []
    """Statuses of 4xx behind which they are asked, too, such as 401, 402 or 404: the others are taken for the client's
    mistake."""
    dialect: str = ""
    """How it writes calls, if that is not as its upstream says: a name, auto or detect."""
    prefill: str = ""
    """What its prompt has already written of the reply, such as <think>."""
    delivery: Delivery | None = None
    """For this model, instead of the gateway's."""
    reasoning: ReasoningPolicy | None = None
    """For this model, instead of the gateway's."""
    empty: EmptyPolicy | None = None
    """For this model, instead of the gateway's."""
    timeouts: Timeouts | None = None
    """All of them, instead of its upstream's."""
    extra: dict[str, Any] = {}
    """Further fields of every request body."""


class RequestLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    body: Annotated[int, Meta(ge=1024)] = 32 * 1024 * 1024
    """The largest request body, in bytes."""
    reply: Annotated[int, Meta(ge=1024)] = 64 * 1024 * 1024
    """The largest whole reply of an upstream, in bytes."""
    connections: Annotated[int, Meta(ge=1)] = 8192
    """How many connections of clients one worker has open at once. More get 503, with retry-after."""
    head: Seconds = 10
    """How long a client may take for the head of a request: from its first byte, and on a new connection from the
    start."""
    rate: Annotated[int, Meta(ge=0)] = 256
    """How many bytes a second a client sends of its body at least, once ten seconds have passed. 0: any."""
    streams: Annotated[int, Meta(ge=1)] = 4096
    """How many requests one worker serves at once. More get 529 or 503, with retry-after."""
    send: Seconds = 120
    """How long a client may take for the whole body of its request, and to read what was sent before it counts as
    gone."""


class Capture(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    dir: str
    """Where each exchange is written, a file each; made if missing, for its owner only."""
    keep: Annotated[int, Meta(ge=1)] = 1000
    """How many are kept; the oldest go first."""


class Log(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: Literal["text", "json"] = "text"
    """text: for people. json: an object on each line."""
    level: Literal["error", "info", "debug"] = "info"
    """debug: bodies too, and never a key."""
    file: str = ""
    """Where to, instead of standard error. Once it has 10 MB it is put aside as FILE.1, and that as FILE.2."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    host: str = "127.0.0.1"
    """Where it listens. Elsewhere than on loopback, `keys` are required."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8484
    """0: any that is free."""
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    """How many processes share the port."""
    demo: bool = False
    """Adds the demo model: demo/<dialect> for every dialect, with no key and no network."""
    demo_pace: Annotated[float, Meta(ge=0)] = 0.004
    """Seconds from one token of the demo model to the next, so that a stream can be seen. 0: all at once."""
    upstreams: dict[str, Upstream] = {}
    """Who can be asked, each under a name of your choice."""
    default: str = ""
    """The upstream of all models that no entry of `models` names; if there is but one upstream, it is that one."""
    models: dict[str, Model | str] = {}
    """What clients may call a model. A text is another id of this table. `*` in an id stands for anything."""
    tiers: dict[Literal["opus", "sonnet", "haiku"], str] = {}
    """What Claude's tiers stand for: every id with `claude` and the tier in it, and the tier alone."""
    overrides: dict[str, str] = {}
    """Dialects by the upstream's model ids, before all else: `"*kimi*": kimi_k2`"""
    dialects: dict[str, dict[str, Any]] = {}
    """Dialects of one's own, with the fields of a dialect file but `name`; `summary` may be left out."""
    delivery: Delivery = "stream"
    """stream: arguments go out as they come. whole: a call goes out once it is complete and valid."""
    reasoning: ReasoningPolicy = "keep"
    """What becomes of the thinking."""
    empty: EmptyPolicy = "keep"
    """What becomes of a reply with no text and no call in it. retry: it is asked for once more, if none of it has gone
    out; thinking that was streamed has."""
    history: Literal["mend", "strict"] = "mend"
    """What becomes of a conversation with gaps: mended, or refused with the place."""
    limits: RequestLimits = RequestLimits()
    """How much is too much."""
    keys: list[Secret] = []
    """What clients may show as their key. None: on loopback anyone may ask."""
    hosts: list[str] = []
    """Further names that this gateway is reached by. A request to any other name is refused, as from a web page."""
    seal_key: Secret = ""
    """Authenticates thinking that travels through clients. Without one, a key is made and kept for this user. Several
    machines behind one balancer need the same."""
    capture: Capture | None = None
    """Writes what came and went to files. They hold all that is said, and never a key."""
    log: Log = Log()
    """What is told of its work."""
    keepalive: Seconds = 10
    """How long a client of a stream gets nothing before it gets a keep-alive comment, or a ping of Messages, and
    between two of them. It may be twice as long."""
    drain: Seconds = 30
    """How long streams may take to finish once the gateway is told to stop."""
    otel: bool = False
    """Whether each request is traced with OpenTelemetry, which has settings of its own (OTEL_*)."""
