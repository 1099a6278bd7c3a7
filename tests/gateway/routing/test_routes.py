"""Tests of routing a model id to upstreams, and of the errors for invalid routing settings."""

from __future__ import annotations

import itertools
import re
import time
from typing import Any

import msgspec
import pytest

import interlingua as il
from interlingua.dialects.registry import dialect_for, get_dialect
from interlingua.errors import BadSetting, UnknownModel
from interlingua.gateway.routing.model_patterns import match_wildcards
from interlingua.gateway.routing.routes import Route, Routes
from interlingua.gateway.settings.schema import Settings, Timeouts
from interlingua.upstreams import profile_for_model

ROUTER = {"url": "https://openrouter.ai/api/v1"}
LOCAL = {"url": "http://localhost:8000/v1"}
SAMPLE = '<do>{"name": "ls", "arguments": {"path": "."}}</do>'
MINE = {"summary": "mine", "shape": {"json_envelope": {"open": "<do>", "close": "</do>"}}, "sample": SAMPLE}


def routes(**settings: Any) -> Routes:
    config = {"upstreams": {"router": ROUTER, "local": LOCAL}, **settings}
    return Routes(msgspec.convert(config, Settings), demo_url="http://127.0.0.1:9/v1")


def targets(routes: list[Route]) -> list[str]:
    return [f"{route.name}:{route.model}" for route in routes]


TABLE = {
    "kimi": {"upstream": "router", "model": "moonshotai/kimi-k2", "fallback": ["local-kimi", "qwen"]},
    "local-kimi": {"upstream": "local", "fallback": ["kimi"]},
    "qwen": {"upstream": "router", "model": "qwen/qwen3-coder"},
    "fast": "best",
    "best": "kimi",
    "or/*": {"upstream": "router", "model": "*"},
    "or/special-*": {"upstream": "local", "model": "s-*-x"},
    "or/special-one": {"upstream": "local", "model": "the one"},
    "two/*/of/*": {"upstream": "router", "model": "*:*"},
    "both/*": {"upstream": "local", "model": "*", "fallback": ["or/*", "or/other"]},
    "old/*": "or/*",
    "to-router": "or/z-ai/glm-4.5",
    "same": {"upstream": "router", "model": "qwen/qwen3-coder", "fallback": ["qwen"]},
    "grow/*": {"upstream": "local", "model": "*", "fallback": ["grow/more/*"]},
}


def test_wildcards_match_like_greedy_regular_expression() -> None:
    """The result equals that of a regular expression with greedy groups."""
    for pattern in map("".join, itertools.product("*ab", repeat=4)):
        regex = re.compile("(.*)".join(map(re.escape, pattern.split("*"))), re.DOTALL)
        for length in range(6):
            for id in map("".join, itertools.product("ab", repeat=length)):
                match = regex.fullmatch(id)
                assert match_wildcards(pattern, id) == (match.groups() if match else None), (pattern, id)


@pytest.mark.parametrize("pattern", ["*-*-*-*-b", "*-*-*-*-*-*-*-*-*", "*a*a*a*a*b"])
def test_wildcard_matching_is_fast_for_hostile_ids(pattern: str) -> None:
    start = time.process_time()
    for id in ("-" * 100_000, "a" * 100_000, "-a" * 50_000):
        match_wildcards(pattern, id)
    assert time.process_time() - start < 0.5  # 0.05 s on an idle machine; with backtracking it took seconds


FOUND = {
    "a model, and its fallbacks with theirs": (
        "kimi",
        "router:moonshotai/kimi-k2 local:local-kimi router:qwen/qwen3-coder",
    ),
    "a loop of fallbacks": ("local-kimi", "local:local-kimi router:moonshotai/kimi-k2 router:qwen/qwen3-coder"),
    "an alias of an alias": ("fast", "router:moonshotai/kimi-k2 local:local-kimi router:qwen/qwen3-coder"),
    "an asterisk": ("or/z-ai/glm-4.5", "router:z-ai/glm-4.5"),
    "the longest pattern first": ("or/special-2", "local:s-2-x"),
    "an exact id first": ("or/special-one", "local:the one"),
    "several asterisks": ("two/a/of/b", "router:a:b"),
    "asterisks of fallbacks": ("both/x", "local:x router:x router:other"),
    "an alias with an asterisk": ("old/x", "router:x"),
    "an alias that matches a pattern": ("to-router", "router:z-ai/glm-4.5"),
    "no duplicate route": ("same", "router:qwen/qwen3-coder"),
    "no endless recursion": ("grow/x", "local:x"),
    "only the asterisk is special": ("or/[a]?", "router:[a]?"),
}


@pytest.mark.parametrize(("id", "expected"), FOUND.values(), ids=FOUND)
def test_lookup_in_models_table(id: str, expected: str) -> None:
    assert " ".join(targets(routes(models=TABLE).find(id))) == expected


TIERS = {"opus": "kimi", "haiku": "some/model", "fable": "kimi"}
OTHERS = {
    "a tier": ("claude-opus-4-5-20251101", "router:moonshotai/kimi-k2"),
    "a tier alone": ("opus", "router:moonshotai/kimi-k2"),
    "the fourth tier": ("claude-fable-5", "router:moonshotai/kimi-k2"),
    "in any case": ("Anthropic/Claude-Opus-5", "router:moonshotai/kimi-k2"),
    "a tier's model that the default has": ("claude-haiku-4-5", "local:some/model"),
    "a tier that is not set": ("claude-sonnet-4-5", "local:claude-sonnet-4-5"),
    "no tier": ("my-opus", "local:my-opus"),
    "the table comes before the tiers": ("claude-opus-mine", "local:mine"),
    "the default": ("whatever", "local:whatever"),
}


@pytest.mark.parametrize(("id", "expected"), OTHERS.values(), ids=OTHERS)
def test_lookup_of_tiers_and_default(id: str, expected: str) -> None:
    models = {
        "kimi": {"upstream": "router", "model": "moonshotai/kimi-k2"},
        "claude-opus-m*": {"upstream": "local", "model": "m*"},
    }
    assert targets(routes(models=models, tiers=TIERS, default="local").find(id)) == [expected]


def test_only_upstream_is_the_default() -> None:
    assert targets(routes(upstreams={"local": LOCAL}).find("x")) == ["local:x"]
    assert targets(routes(upstreams={"local": LOCAL}, demo=True).find("x")) == ["local:x"]


def test_unknown_model_raises() -> None:
    with pytest.raises(UnknownModel) as raised:
        routes(models=TABLE).find("qwem")
    error = raised.value
    assert (str(error), error.hint) == ("model: no model is called 'qwem'", "did you mean 'qwen'?")
    assert (error.status, error.type, error.path, error.code) == (404, "not_found_error", "model", "model_not_found")
    with pytest.raises(UnknownModel) as raised:
        routes(default="local").find("x" * 1_000_000)
    assert (str(raised.value), raised.value.hint) == (
        f"model: no model is called '{'x' * 100}…'",
        "GET /v1/models lists the known models",
    )
    with pytest.raises(UnknownModel):
        routes(default="local").find("")


# ── settings of a route────────────────────────────────────────────────────────────────────────────────────────────────


def test_model_settings_override_upstream_settings() -> None:
    upstreams = {"local": {**LOCAL, "extra": {"a": 1, "b": 1}, "timeouts": {"idle": 7}}}
    own = {
        "upstream": "local",
        "extra": {"b": 2},
        "timeouts": {"idle": 9},
        "prefill": "<think>",
        "delivery": "whole",
        "arguments": "exact",
        "reasoning": "drop",
    }
    models = {"plain": {"upstream": "local"}, "own": own}
    [plain], [mine] = (routes(upstreams=upstreams, models=models).find(id) for id in ("plain", "own"))
    assert (plain.extra, plain.timeouts, plain.prefill) == ({"a": 1, "b": 1}, Timeouts(idle=7), "")
    assert (plain.delivery, plain.arguments, plain.reasoning) == ("stream", "repair", "keep")
    assert (mine.extra, mine.timeouts, mine.prefill) == ({"a": 1, "b": 2}, Timeouts(idle=9), "<think>")
    assert (mine.delivery, mine.arguments, mine.reasoning) == ("whole", "exact", "drop")


PROFILES = {
    "by the URL": ({**ROUTER}, "openrouter", "any"),
    "by its name": ({**LOCAL, "profile": "vllm"}, "vllm", "any"),
    "unknown upstream": ({**LOCAL}, "any", "any"),
    "other ids": ({**ROUTER, "ids": "nine"}, "openrouter", "nine"),
}


@pytest.mark.parametrize(("upstream", "name", "ids"), PROFILES.values(), ids=PROFILES)
def test_profile_of_route(upstream: dict[str, Any], name: str, ids: str) -> None:
    [route] = routes(upstreams={"it": upstream}).find("x")
    assert (route.profile.name, route.profile.ids) == (name, ids)


@pytest.mark.parametrize(("ids", "wanted"), [("auto", "functions"), ("any", "any"), ("nine", "nine")])
def test_ids_setting_overrides_profile_for_every_model(ids: str, wanted: str) -> None:
    [route] = routes(upstreams={"it": {**ROUTER, "ids": ids}}).find("moonshotai/kimi-k2")
    assert profile_for_model(route.profile, route.model).ids == wanted


@pytest.mark.parametrize(("vision", "wanted"), [(None, False), (True, True), (False, False)])
def test_vision_setting_overrides_what_is_known_about_the_model(vision: bool | None, wanted: bool) -> None:
    [route] = routes(models={"it": {"upstream": "local", "model": "qwen3-coder", "vision": vision}}).find("it")
    assert profile_for_model(route.profile, route.model).vision == wanted


DIALECTS: dict[str, tuple[dict[str, Any], str]] = {
    # settings of upstream, model, overrides; expected dialect of `some/Kimi-K2-Thing`
    "auto": ({}, "kimi_k2"),
    "auto, of an unknown model": ({"model": {"model": "gpt-9"}}, "standard"),
    "set for the upstream": ({"upstream": {"dialect": "hermes"}}, "hermes"),
    "set for the model": ({"upstream": {"dialect": "hermes"}, "model": {"dialect": "glm45"}}, "glm45"),
    "auto for the model": ({"upstream": {"dialect": "hermes"}, "model": {"dialect": "auto"}}, "kimi_k2"),
    "detect": ({"upstream": {"dialect": "detect"}}, "detect"),
    "an override": ({"model": {"dialect": "glm45"}, "overrides": {"*KIMI*": "nemotron"}}, "nemotron"),
    "the most specific override": ({"overrides": {"*": "nemotron", "*kimi-k2*": "xlam", "*kimi*": "glm45"}}, "xlam"),
    "an override to auto": ({"model": {"dialect": "glm45"}, "overrides": {"*kimi*": "auto"}}, "kimi_k2"),
    "an override that does not match": ({"overrides": {"kimi": "nemotron"}}, "kimi_k2"),
    "custom": ({"model": {"dialect": "mine"}}, "mine"),
    "custom, without a summary": (
        {
            "dialects": {"mine": {"models": ["*kimi*"], "shape": MINE["shape"]}},
        },
        "mine",
    ),
    "custom, by model id": ({"dialects": {"mine": {**MINE, "models": ["*kimi*"]}}}, "mine"),
}


@pytest.mark.parametrize(("config", "expected"), DIALECTS.values(), ids=DIALECTS)
def test_dialect_of_route(config: dict[str, Any], expected: str) -> None:
    [route] = routes(
        upstreams={"local": {**LOCAL, **config.get("upstream", {})}},
        models={"it": {"upstream": "local", "model": "some/Kimi-K2-Thing", **config.get("model", {})}},
        overrides=config.get("overrides", {}),
        dialects=config.get("dialects", {"mine": MINE}),
    ).find("it")
    assert route.dialect_name == expected
    assert route.dialect == "detect" or isinstance(route.dialect, il.Dialect)


def test_custom_dialect_parses() -> None:
    [route] = routes(upstreams={"it": {**LOCAL, "dialect": "mine"}}, dialects={"mine": MINE}).find("x")
    assert [call.name for call in il.parse(SAMPLE, route.dialect).calls] == ["ls"]


# ── the demo ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_demo_routes() -> None:
    demo = routes(upstreams={}, demo=True, models={"k": "demo/kimi_k2"}, tiers={"sonnet": "demo/glm45"})
    for id in ("demo/kimi_k2", "k"):
        [route] = demo.find(id)
        assert (route.name, route.model, route.dialect) == ("demo", "kimi_k2", get_dialect("kimi_k2"))
        assert route.upstream.url == "http://127.0.0.1:9/v1"
    assert demo.find("claude-sonnet-4-5")[0].dialect_name == "glm45"
    assert demo.find("demo/standard")[0].dialect is dialect_for("")
    with pytest.raises(UnknownModel, match="no model is called 'demo/kimi_k22'") as raised:
        demo.find("demo/kimi_k22")
    assert raised.value.hint.startswith("did you mean 'demo/kimi_k2' or ")


def test_listed_model_ids() -> None:
    assert routes(models=TABLE).model_ids() == [id for id in TABLE if "*" not in id]
    native = [f"demo/{dialect.name}" for dialect in il.dialects() if dialect.name != "standard"]
    demo = routes(upstreams={}, demo=True, dialects={"mine": MINE})
    assert demo.model_ids() == [*native, "demo/mine"]
    assert all(demo.find(id)[0].name == "demo" for id in demo.model_ids())


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def upstream(**fields: Any) -> dict[str, Any]:
    return {"upstreams": {"it": {**LOCAL, **fields}}}


def model(**fields: Any) -> dict[str, Any]:
    return {"models": {"it": {"upstream": "local", **fields}}}


KEY_HINT = "add one to `keys`, or set INTERLINGUA_KEYS; generate one: python -c "
STARS = "each `*` is replaced by the text that a `*` of the id matched"
MISTAKES: dict[str, tuple[dict[str, Any], str, str]] = {
    "no upstream": (
        {"upstreams": {}},
        "upstreams: no upstream is configured",
        "use --upstream URL or --demo; `interlingua config init` writes a settings file",
    ),
    "no such upstream": (
        model(upstream="locla"),
        "models.it.upstream: no upstream is called 'locla'",
        "did you mean 'local'?",
    ),
    "no such default": ({"default": "ruoter"}, "default: no upstream is called 'ruoter'", "did you mean 'router'?"),
    "aliases in a loop": (
        {"models": {"a": "b", "b": "c", "c": "a"}},
        "models.a: circular alias: a → b → c → a",
        "give one of them an `upstream`",
    ),
    "an alias of itself": (
        {"models": {"*": "more/*"}},
        "models.*: circular alias: * → *",
        "give one of them an `upstream`",
    ),
    "an alias of nothing": (
        {"models": {"a": "kmi", "kimi": {"upstream": "local"}}},
        "models.a: no entry of `models` is called 'kmi'",
        "did you mean 'kimi'?",
    ),
    "a fallback to nothing": (
        model(fallback=["itt"]),
        "models.it.fallback: no entry of `models` is called 'itt'",
        "did you mean 'it'?",
    ),
    "a fallback with an asterisk": (model(fallback=["*"]), "models.it.fallback: '*' has more `*` than the id", STARS),
    "a model with an asterisk": (model(model="a*"), "models.it.model: 'a*' has more `*` than the id", STARS),
    "a tier of nothing": (
        {"tiers": {"opus": "kimi"}},
        "tiers.opus: no model is called 'kimi'",
        "add it to `models` with its upstream",
    ),
    "a tier of another model": (
        {**model(), "tiers": {"opus": "i"}},
        "tiers.opus: no model is called 'i'",
        "did you mean 'it'?",
    ),
    "an upstream's dialect": (
        upstream(dialect="kimik2"),
        "upstreams.it.dialect: no dialect is called 'kimik2'",
        "did you mean 'kimi_k2'?",
    ),
    "a model's dialect": (
        model(dialect="detct"),
        "models.it.dialect: no dialect is called 'detct'",
        "did you mean 'detect'?",
    ),
    "an override's dialect": (
        {"overrides": {"*a*": "kimi"}},
        "overrides.*a*: no dialect is called 'kimi'",
        "did you mean 'kimi_k2' or 'kimi_k3'?",
    ),
    "a typo in an override's dialect": (
        {"overrides": {"*a*": "hermse"}},
        "overrides.*a*: no dialect is called 'hermse'",
        "did you mean 'hermes'?",
    ),
    "a profile": (
        upstream(profile="moonshoot"),
        "upstreams.it.profile: no upstream is called 'moonshoot'",
        "did you mean 'moonshot'?",
    ),
    "a dialect with a wrong field": (
        {"dialects": {"mine": {**MINE, "thinkin": ["<a>", "</a>"]}}},
        "dialects.mine: thinkin: unknown field",
        "did you mean 'thinking'? for example: thinking: ",
    ),
    "a dialect that does not work": (
        {"dialects": {"mine": {**MINE, "sample": "<di>"}}},
        "dialects.mine: sample: contains no call; it was parsed as '<di>'",
        "compare the markers with the sample",
    ),
    "a dialect with a name": (
        {"dialects": {"mine": {"name": "yours"}}},
        "dialects.mine.name: the name of the dialect is its key in `dialects`",
        "remove `name`",
    ),
    "a dialect called auto": (
        {"dialects": {"auto": MINE}},
        "dialects.auto: 'auto' is a reserved name",
        "choose another name",
    ),
    "a URL of another kind": (
        upstream(url="ftp://x/v1"),
        "upstreams.it.url: 'ftp://x/v1' is not an http or https URL",
        "for example: https://openrouter.ai/api/v1",
    ),
    "a URL without a scheme": (
        upstream(url="openrouter.ai/api/v1"),
        "upstreams.it.url: 'openrouter.ai/api/v1' is not an http or https URL",
        "did you mean https://openrouter.ai/api/v1?",
    ),
    "a local URL without a scheme": (
        upstream(url="gpu-box:8000/v1"),
        "upstreams.it.url: 'gpu-box:8000/v1' is not an http or https URL",
        "did you mean http://gpu-box:8000/v1?",
    ),
    "a URL with a password": (
        upstream(url="https://me:secret@x/v1"),
        "upstreams.it.url: the URL contains a user, query or fragment",
        "put keys into `key` or `headers`",
    ),
    "a key with a line end": (
        upstream(key="abc\n"),
        "upstreams.it.key: contains a line break or a control character",
        "check that it is the right variable",
    ),
    "a header's name": (
        upstream(headers={"X-A\r\nX-B": "1"}),
        "upstreams.it.headers: 'X-A\\r\\nX-B' is not a valid header name",
        "for example: X-Title",
    ),
    "a header's value": (
        upstream(headers={"X-A": "1\r\nX-B: 2"}),
        "upstreams.it.headers.X-A: contains a line break or a control character",
        "write it on one line",
    ),
    "an upstream's name of two lines": (
        {"upstreams": {"a\nb": LOCAL}},
        "upstreams.a\nb: 'a\\nb' cannot be sent in a header",
        "use letters and digits",
    ),
    "an upstream's name that is not Latin-1": (
        {"upstreams": {"模型": LOCAL}},
        "upstreams.模型: '模型' cannot be sent in a header",
        "use letters and digits",
    ),
    "no key on a public address": (
        {"host": "0.0.0.0"},
        "keys: '0.0.0.0' is reachable from other machines, so a key is required",
        KEY_HINT,
    ),
    "name of a client": (
        {"keys": {"alice smith": "a-key-of-16-chars"}},
        "keys.alice smith: 'alice smith' cannot be the name of a client",
        "use at most 64 letters, digits, dots, dashes, underscores and @",
    ),
    "one key for two clients": (
        {"keys": {"alice": "a-key-of-16-chars", "bob": "a-key-of-16-chars"}},
        "keys.bob: has the same key as alice",
        "each client needs a key of its own",
    ),
    "empty key of a client": ({"keys": {"alice": ""}}, "keys.alice: the key is empty", "generate one: python -c "),
    "a short key on a public address": (
        {"host": "example.org", "keys": ["a-key-of-16-chars", "sk-1"]},
        "keys: a key has less than 16 characters and could be guessed from other machines",
        KEY_HINT,
    ),
    "a short seal key": (
        {"seal_key": "secret"},
        "seal_key: the key has less than 16 characters and could be guessed",
        "generate one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
    ),
    "a database that is not one": (
        {"state": {"store": "postgresql", "url": "mysql://host/database"}},
        "state.url: is not the URL of a PostgreSQL database",
        "for example: postgresql://user:password@host/database",
    ),
    "a database that is not used": (
        {"state": {"url": "postgresql://host/database"}},
        "state.url: is not used, because `store` is sqlite",
        "add `store: postgresql`, or remove it",
    ),
    "a search engine without a key": (
        {"web_search": {"engine": "brave"}},
        "web_search.key: brave needs a key",
        "write it as ${NAME}, a variable",
    ),
    "a search engine without a URL": (
        {"web_search": {"engine": "searxng"}},
        "web_search.url: '' is not an http or https URL",
        "for example: http://127.0.0.1:8888",
    ),
    "a search URL without a place for the query": (
        {"web_search": {"engine": "url", "url": "http://127.0.0.1/search"}},
        "web_search.url: has no {query}",
        "for example: https://search.example/api?q={query}",
    ),
    "a search command without a place for the query": (
        {"web_search": {"engine": "command", "command": ["python3", "search.py"]}},
        "web_search.command: has no program with an argument {query}",
        "for example: [ddgr, --json, --num, '8', '{query}']",
    ),
    "a search command that is not installed": (
        {"web_search": {"engine": "command", "command": ["no-such-program", "{query}"]}},
        "web_search.command: cannot find the program 'no-such-program'",
        "install it, or write its path",
    ),
    "an upstream called demo": (
        {"demo": True, "upstreams": {"demo": LOCAL}},
        "upstreams.demo: the name is reserved for the upstream that `demo: true` adds",
        "choose another name",
    ),
    "an unknown demo model": (
        {"demo": True, "models": {"k": "demo/kimi"}},
        "models.k: the demo has no model 'kimi'",
        "did you mean 'kimi_k2' or 'kimi_k3'?",
    ),
    "a tier of an unknown demo model": (
        {"demo": True, "tiers": {"opus": "demo/hermse"}},
        "tiers.opus: the demo has no model 'hermse'",
        "did you mean 'hermes'?",
    ),
}


@pytest.mark.parametrize(("settings", "message", "hint"), MISTAKES.values(), ids=MISTAKES)
def test_invalid_settings(settings: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(BadSetting) as raised:
        routes(**settings)
    assert str(raised.value) == message
    assert raised.value.hint.startswith(hint) if hint.endswith(" ") else raised.value.hint == hint
    assert message.startswith(".".join(raised.value.path))


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "http://", "http://[::1/v1", "http://x:y/v1", "http://a b/", "http://a\n/"]
)
def test_invalid_upstream_url(url: str) -> None:
    with pytest.raises(BadSetting, match="is not an http or https URL"):
        routes(**upstream(url=url))


@pytest.mark.parametrize("url", ["http://x?a=b", "http://x/v1#y"])
def test_upstream_url_with_query_or_fragment(url: str) -> None:
    with pytest.raises(BadSetting, match="contains a user, query or fragment"):
        routes(**upstream(url=url))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]", "LocalHost"])
def test_loopback_requires_no_key(host: str) -> None:
    assert routes(host=host, default="local").find("x")
    assert routes(host=host, default="local", keys=["short"]).find("x")


def test_other_addresses_with_key() -> None:
    assert routes(host="0.0.0.0", default="local", keys=["a-key-of-16-chars"]).find("x")


def test_upstream_identity_is_derived_from_url_not_from_name() -> None:
    """Reasoning that OpenAI encrypted must not be sent to a server that is only named `openai` in the settings."""
    upstreams = {"openai": LOCAL, "mine": {"url": "https://api.openai.com/v1"}}
    models = {"a": {"upstream": "openai"}, "b": {"upstream": "mine"}}
    found = [route for model in models for route in routes(upstreams=upstreams, models=models).find(model)]
    assert [route.target.identity for route in found] == ["@openai", "openai"]
