"""Use of one cassette by a program: a gateway in a thread of the program replays it, or records it.

with use_cassette("weather.yaml") as cassette:
    client = cassette.openai()  # or OpenAI(base_url=cassette.openai_url), in any way the program makes its client
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from interlingua.cassettes.cassette_files import load_cassette
from interlingua.cassettes.recorded_exchange import RecordedExchange
from interlingua.errors import UsageError, suggestion_hint
from interlingua.gateway.cassettes.deck import CassetteDeck, check_options
from interlingua.gateway.processes.gateway_thread import GatewayThread
from interlingua.gateway.settings.loader import load_settings
from interlingua.gateway.settings.schema import Cassettes, Log, Settings, State, Upstream

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from openai import AsyncOpenAI, OpenAI

__all__ = ["MODES", "CassetteSession", "Mode", "use_cassette"]

Mode: TypeAlias = Literal["none", "once", "new_episodes", "all"]
MODES: dict[str, Literal["replay", "record", "hybrid"]] = {
    "none": "replay",
    "once": "replay",  # or `record`, if there is no cassette yet
    "new_episodes": "hybrid",
    "all": "record",
    "rewrite": "record",
}
"""Record modes, as vcrpy and pytest-recording name them, and the mode of the gateway for each."""
PLACEHOLDER_KEY = "cassette"
"""API key of a client that only gets recorded replies. SDKs do not start without one."""
OPENAI_URL, ANTHROPIC_URL = "https://api.openai.com/v1", "https://api.anthropic.com"


class CassetteSession:
    """A cassette in use.

    Attributes:
        path: The cassette: a file, or a folder.
        mode: The record mode.
        url: Address of the gateway, for SDKs that add the version themselves (Anthropic).
        openai_url: The same with the version, for all others.
        allow_misses: Whether a test may send requests without a recording. If not, the pytest plugin fails it.
    """

    def __init__(self, path: Path, mode: str, gateway: GatewayThread, upstream_keys: Mapping[str, str]) -> None:
        self.path = path
        self.mode = mode
        self._gateway = gateway
        self._upstream_keys = upstream_keys
        self.allow_misses = False

    @property
    def url(self) -> str:
        return self._gateway.url

    @property
    def openai_url(self) -> str:
        return f"{self._gateway.url}/v1"

    @property
    def misses(self) -> list[str]:
        """Messages about requests without a recording, each with the nearest one and the difference."""
        return list(self._deck.misses)

    @property
    def record_hint(self) -> str:
        """Instructions for recording what is missing."""
        return self._deck.record_hint

    @property
    def exchanges(self) -> list[RecordedExchange]:
        """All recordings. Those of this session are among them as soon as they are written."""
        return [recording.exchange for recording in self._deck.recordings]

    @property
    def environment(self) -> dict[str, str]:
        """Variables that point the SDKs of a program at the cassette."""
        return {
            "OPENAI_BASE_URL": self.openai_url,
            "ANTHROPIC_BASE_URL": self.url,
            **{name: key or PLACEHOLDER_KEY for name, key in self._upstream_keys.items()},
        }

    def openai(self, **options: Any) -> OpenAI:
        """Return a client of the OpenAI SDK. `options` are those of its constructor."""
        import openai

        return openai.OpenAI(**self._client_options(self.openai_url, "OPENAI_API_KEY", options))

    def async_openai(self, **options: Any) -> AsyncOpenAI:
        """Return an asynchronous client of the OpenAI SDK."""
        import openai

        return openai.AsyncOpenAI(**self._client_options(self.openai_url, "OPENAI_API_KEY", options))

    def anthropic(self, **options: Any) -> Anthropic:
        """Return a client of the Anthropic SDK."""
        import anthropic

        return anthropic.Anthropic(**self._client_options(self.url, "ANTHROPIC_API_KEY", options))

    def async_anthropic(self, **options: Any) -> AsyncAnthropic:
        """Return an asynchronous client of the Anthropic SDK."""
        import anthropic

        return anthropic.AsyncAnthropic(**self._client_options(self.url, "ANTHROPIC_API_KEY", options))

    @property
    def _deck(self) -> CassetteDeck:
        deck = self._gateway.state.cassettes
        assert deck is not None, "the gateway was started with a cassette"
        return deck

    def _client_options(self, url: str, key_variable: str, options: dict[str, Any]) -> dict[str, Any]:
        key = self._upstream_keys.get(key_variable) or PLACEHOLDER_KEY
        return {"base_url": url, "api_key": key, **options}


@contextmanager
def use_cassette(
    path: str | Path,
    mode: str = "once",
    *,
    upstream: str | Mapping[str, Any] | None = None,
    settings: Settings | str | Path | None = None,
    ignore: Sequence[str] = (),
    replace: Mapping[str, str] | None = None,
    cut: str = "recorded",
    speed: float = 0,
    fault: str = "",
    environment: Mapping[str, str] | None = None,
    record_hint: str = "",
) -> Iterator[CassetteSession]:
    """Replay a cassette, or record it, until the block ends.

    Args:
        path: The cassette: a file (`.yaml`), or a folder with a file for each conversation.
        mode: `none`: only recorded replies. `once`: the same, or record everything if there is no cassette yet.
            `new_episodes`: record what is missing. `all`: record everything anew.
        upstream: The upstream to record: its URL, or its settings as in `upstreams` of a settings file. Its API is that
            of OpenAI Chat Completions, unless `api` is set.
        settings: Settings of the gateway that records, or the path of a settings file. Without `upstream` and
            `settings`: those that `interlingua serve` would use, if they have an upstream. Otherwise each request goes
            to the vendor of its API, OpenAI or Anthropic, with the client's own key. A replay uses only the `dialects`
            of settings that are passed as an object.
        ignore: Parts of a request that do not count; see `cassettes.ignore` in the settings.
        replace: Regular expressions and replacements for the texts of requests; see `cassettes.replace`.
        cut: Pieces in which a reply arrives; see `cassettes.cut`.
        speed: Speed of a replay; see `cassettes.speed`.
        fault: Fault that is mixed in; see `cassettes.fault`.
        environment: Environment variables; None: those of the process.
        record_hint: Hint of the error for a request without a recording.

    Raises:
        InterlinguaError: The cassette or the settings cannot be read.
    """
    path, environment = Path(path), os.environ if environment is None else environment
    config = Cassettes(
        dir=str(path),
        mode=_gateway_mode(mode, path),
        ignore=list(ignore),
        replace=dict(replace or {}),
        cut=cut,
        speed=speed,
        fault=fault,
    )
    _check(config)
    keys = {name: environment.get(name, "") for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")}
    if config.mode == "replay":
        base = Settings(dialects=settings.dialects if isinstance(settings, Settings) else {})
    else:
        base = _recorded_settings(upstream, settings, environment)
    with TemporaryDirectory(prefix="interlingua-") as folder:
        state = State(path=str(Path(folder, "responses.db")))  # for clients that continue a response by its id
        gateway_settings = msgspec.structs.replace(
            base, cassettes=config, log=Log(level="error"), state=state, capture=None, keys=[]
        )
        with GatewayThread(gateway_settings) as gateway:
            session = CassetteSession(path, mode, gateway, keys)
            if record_hint:
                session._deck.record_hint = record_hint
            yield session


def _gateway_mode(mode: str, path: Path) -> Literal["replay", "record", "hybrid"]:
    if mode not in MODES:
        raise UsageError(f"no record mode is called {mode!r}", suggestion_hint(mode, MODES))
    return "record" if mode == "once" and not path.exists() else MODES[mode]


def _check(config: Cassettes) -> None:
    """Raise InterlinguaError if an option is wrong or the cassette cannot be read."""
    rules = check_options(config)
    if config.mode != "record" and Path(config.dir).exists():
        load_cassette(config.dir, rules)


def _recorded_settings(
    upstream: str | Mapping[str, Any] | None, settings: Settings | str | Path | None, environment: Mapping[str, str]
) -> Settings:
    """Return the settings of the gateway that records."""
    if isinstance(settings, Settings):
        return settings
    if upstream is not None:
        fields = {"url": upstream} if isinstance(upstream, str) else dict(upstream)
        try:
            return Settings(upstreams={"upstream": msgspec.convert(fields, Upstream)})
        except msgspec.ValidationError as error:
            raise UsageError(f"not the settings of an upstream: {error}", "for example: {'url': URL}") from None
    loaded = load_settings(settings, environment).settings
    return loaded if loaded.upstreams or loaded.demo else _vendor_settings(environment)


def _vendor_settings(environment: Mapping[str, str]) -> Settings:
    """Return settings with which each request goes to the vendor of its API, with the client's own key."""
    openai_url = environment.get("OPENAI_BASE_URL") or OPENAI_URL
    anthropic_url = environment.get("ANTHROPIC_BASE_URL") or ANTHROPIC_URL
    return Settings(
        upstreams={
            "openai": Upstream(url=openai_url, passthrough=True),
            "openai-responses": Upstream(url=openai_url, api="openai-responses", passthrough=True),
            "anthropic": Upstream(url=anthropic_url, api="anthropic-messages", passthrough=True),
        },
        default="openai",
        api_defaults={"openai-responses": "openai-responses", "anthropic-messages": "anthropic"},
    )
