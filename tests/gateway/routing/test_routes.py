"""Which upstreams are asked for a model, and every mistake among the settings that concerns it."""

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
from interlingua.gateway.relay.upstream_request import upstream_identity
from interlingua.gateway.routing.model_patterns import match_wildcards
from interlingua.gateway.routing.routes import Route, Routes
from interlingua.gateway.settings.schema import Settings, Timeouts
from interlingua.upstreams import profile_for_model

ROUTER = {"url": "https://openrouter.ai/api/v1"}
LOCAL = {"url": "http://localhost:8000/v1"}
SAMPLE = '<do>{"name": "ls", "arguments": {"path": "."}}</do>'
MINE = {"summary": "mine", "shape": {"json_envelope": {"open": "<do>", "close": "</do>"}}, "sample": SAMPLE}


def routes(**settings: Any) -> Routes:
    given = {"upstreams": {"router": ROUTER, "local": LOCAL}, **settings}
    return Routes(msgspec.convert(given, Settings), demo_url="http://127.0.0.1:9/v1")


def asked(found: list[Route]) -> list[str]:
    return [f"{route.name}:{route.model}" for route in found]


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


def test_what_asterisks_meet() -> None:
    """As a regular expression has it, whose first part takes as much as it can."""
    for pattern in map("".join, itertools.product("*ab", repeat=4)):
        means = re.compile("(.*)".join(map(re.escape, pattern.split("*"))), re.DOTALL)
        for length in range(6):
            for id in map("".join, itertools.product("ab", repeat=length)):
                match = means.fullmatch(id)
                assert match_wildcards(pattern, id) == (match.groups() if match else None), (pattern, id)


@pytest.mark.parametrize("pattern", ["*-*-*-*-b", "*-*-*-*-*-*-*-*-*", "*a*a*a*a*b"])
def test_a_hostile_id_takes_no_longer_than_any_other(pattern: str) -> None:
    began = time.process_time()
    for id in ("-" * 100_000, "a" * 100_000, "-a" * 50_000):
        match_wildcards(pattern, id)
    assert time.process_time() - began < 0.5  # a tenth of it on an idle machine; it took seconds


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
    "an alias that an asterisk means": ("to-router", "router:z-ai/glm-4.5"),
    "never the same twice": ("same", "router:qwen/qwen3-coder"),
    "never for ever": ("grow/x", "local:x"),
    "no pattern but the asterisk": ("or/[a]?", "router:[a]?"),
}


@pytest.mark.parametrize(("id", "expected"), FOUND.values(), ids=FOUND)
def test_the_table(id: str, expected: str) -> None:
    assert " ".join(asked(routes(models=TABLE).find(id))) == expected


TIERS = {"opus": "kimi", "haiku": "some/model"}
OTHERS = {
    "a tier": ("claude-opus-4-5-20251101", "router:moonshotai/kimi-k2"),
    "a tier alone": ("opus", "router:moonshotai/kimi-k2"),
    "in any case": ("Anthropic/Claude-Opus-5", "router:moonshotai/kimi-k2"),
    "a tier's model that the default has": ("claude-haiku-4-5", "local:some/model"),
    "a tier that is not set": ("claude-sonnet-4-5", "local:claude-sonnet-4-5"),
    "no tier": ("my-opus", "local:my-opus"),
    "the table comes before the tiers": ("claude-opus-mine", "local:mine"),
    "the default": ("whatever", "local:whatever"),
}


@pytest.mark.parametrize(("id", "expected"), OTHERS.values(), ids=OTHERS)
def test_what_the_table_does_not_have(id: str, expected: str) -> None:
    models = {
        "kimi": {"upstream": "router", "model": "moonshotai/kimi-k2"},
        "claude-opus-m*": {"upstream": "local", "model": "m*"},
    }
    assert asked(routes(models=models, tiers=TIERS, default="local").find(id)) == [expected]


def test_the_only_upstream_has_all_models() -> None:
    assert asked(routes(upstreams={"local": LOCAL}).find("x")) == ["local:x"]
    assert asked(routes(upstreams={"local": LOCAL}, demo=True).find("x")) == ["local:x"]


def test_a_model_that_nobody_has() -> None:
    with pytest.raises(UnknownModel) as raised:
        routes(models=TABLE).find("qwem")
    error = raised.value
    assert (str(error), error.hint) == ("model: no model is called 'qwem'", "did you mean 'qwen'?")
    assert (error.status, error.type, error.path, error.code) == (404, "not_found_error", "model", "model_not_found")
    with pytest.raises(UnknownModel) as raised:
        routes(default="local").find("x" * 1_000_000)
    assert (str(raised.value), raised.value.hint) == (
        f"model: no model is called '{'x' * 100}…'",
        "GET /v1/models lists those that are known",
    )
    with pytest.raises(UnknownModel):
        routes(default="local").find("")


# ── what a route says ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_set_for_a_model_comes_before_what_is_set_for_its_upstream() -> None:
    upstreams = {"local": {**LOCAL, "extra": {"a": 1, "b": 1}, "timeouts": {"idle": 7}}}
    own = {
        "upstream": "local",
        "extra": {"b": 2},
        "timeouts": {"idle": 9},
        "prefill": "<think>",
        "delivery": "whole",
        "reasoning": "drop",
    }
    models = {"plain": {"upstream": "local"}, "own": own}
    [plain], [mine] = (routes(upstreams=upstreams, models=models).find(id) for id in ("plain", "own"))
    assert (plain.extra, plain.timeouts, plain.prefill) == ({"a": 1, "b": 1}, Timeouts(idle=7), "")
    assert (plain.delivery, plain.reasoning) == ("stream", "keep")
    assert (mine.extra, mine.timeouts, mine.prefill) == ({"a": 1, "b": 2}, Timeouts(idle=9), "<think>")
    assert (mine.delivery, mine.reasoning) == ("whole", "drop")


PROFILES = {
    "by the URL": ({**ROUTER}, "openrouter", "any"),
    "by its name": ({**LOCAL, "profile": "vllm"}, "vllm", "any"),
    "a stranger": ({**LOCAL}, "any", "any"),
    "other ids": ({**ROUTER, "ids": "nine"}, "openrouter", "nine"),
}


@pytest.mark.parametrize(("upstream", "name", "ids"), PROFILES.values(), ids=PROFILES)
def test_profiles(upstream: dict[str, Any], name: str, ids: str) -> None:
    [route] = routes(upstreams={"it": upstream}).find("x")
    assert (route.profile.name, route.profile.ids) == (name, ids)


@pytest.mark.parametrize(("ids", "wanted"), [("auto", "functions"), ("any", "any"), ("nine", "nine")])
def test_the_users_word_on_ids_counts_for_every_model(ids: str, wanted: str) -> None:
    [route] = routes(upstreams={"it": {**ROUTER, "ids": ids}}).find("moonshotai/kimi-k2")
    assert profile_for_model(route.profile, route.model).ids == wanted


DIALECTS: dict[str, tuple[dict[str, Any], str]] = {
    # what is set for upstream, model, overrides; the dialect of `some/Kimi-K2-Thing`
    "auto": ({}, "kimi_k2"),
    "auto, of a model that nobody knows": ({"model": {"model": "gpt-9"}}, "standard"),
    "the upstream's": ({"upstream": {"dialect": "hermes"}}, "hermes"),
    "the model's": ({"upstream": {"dialect": "hermes"}, "model": {"dialect": "glm45"}}, "glm45"),
    "auto after all": ({"upstream": {"dialect": "hermes"}, "model": {"dialect": "auto"}}, "kimi_k2"),
    "detect": ({"upstream": {"dialect": "detect"}}, "detect"),
    "an override": ({"model": {"dialect": "glm45"}, "overrides": {"*KIMI*": "nemotron"}}, "nemotron"),
    "the most telling override": ({"overrides": {"*": "nemotron", "*kimi-k2*": "xlam", "*kimi*": "glm45"}}, "xlam"),
    "an override to auto": ({"model": {"dialect": "glm45"}, "overrides": {"*kimi*": "auto"}}, "kimi_k2"),
    "an override of others": ({"overrides": {"kimi": "nemotron"}}, "kimi_k2"),
    "one's own": ({"model": {"dialect": "mine"}}, "mine"),
    "one's own, without a summary": (
        {
            "dialects": {"mine": {"models": ["*kimi*"], "shape": MINE["shape"]}},
        },
        "mine",
    ),
    "one's own, by the id": ({"dialects": {"mine": {**MINE, "models": ["*kimi*"]}}}, "mine"),
}


@pytest.mark.parametrize(("given", "expected"), DIALECTS.values(), ids=DIALECTS)
def test_dialects(given: dict[str, Any], expected: str) -> None:
    [route] = routes(
        upstreams={"local": {**LOCAL, **given.get("upstream", {})}},
        models={"it": {"upstream": "local", "model": "some/Kimi-K2-Thing", **given.get("model", {})}},
        overrides=given.get("overrides", {}),
        dialects=given.get("dialects", {"mine": MINE}),
    ).find("it")
    assert route.dialect_name == expected
    assert route.dialect == "detect" or isinstance(route.dialect, il.Dialect)


def test_a_dialect_of_ones_own_reads() -> None:
    [route] = routes(upstreams={"it": {**LOCAL, "dialect": "mine"}}, dialects={"mine": MINE}).find("x")
    assert [call.name for call in il.parse(SAMPLE, route.dialect).calls] == ["ls"]


# ── the demo ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_demo() -> None:
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


def test_the_ids_that_clients_are_told() -> None:
    assert routes(models=TABLE).model_ids() == [id for id in TABLE if "*" not in id]
    native = [f"demo/{dialect.name}" for dialect in il.dialects() if dialect.name != "standard"]
    demo = routes(upstreams={}, demo=True, dialects={"mine": MINE})
    assert demo.model_ids() == [*native, "demo/mine"]
    assert all(demo.find(id)[0].name == "demo" for id in demo.model_ids())


# ── mistakes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def upstream(**fields: Any) -> dict[str, Any]:
    return {"upstreams": {"it": {**LOCAL, **fields}}}


def model(**fields: Any) -> dict[str, Any]:
    return {"models": {"it": {"upstream": "local", **fields}}}


KEY_HINT = "put one into `keys`, or into INTERLINGUA_KEYS; make one: python -c "
STARS = "each `*` is what one in the id has met"
MISTAKES: dict[str, tuple[dict[str, Any], str, str]] = {
    "no upstream": (
        {"upstreams": {}},
        "upstreams: there is none, so that nobody can be asked",
        "name one, or start with --demo",
    ),
    "no such upstream": (
        model(upstream="locla"),
        "models.it.upstream: no upstream is called 'locla'",
        "did you mean 'local'?",
    ),
    "no such default": ({"default": "ruoter"}, "default: no upstream is called 'ruoter'", "did you mean 'router'?"),
    "aliases in a loop": (
        {"models": {"a": "b", "b": "c", "c": "a"}},
        "models.a: these ids only stand for each other: a → b → c → a",
        "let one of them name its upstream",
    ),
    "an alias of itself": (
        {"models": {"*": "more/*"}},
        "models.*: these ids only stand for each other: * → *",
        "let one of them name its upstream",
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
        "name its upstream in `models`",
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
        "dialects.mine: thinkin: there is no such field",
        "did you mean 'thinking'? for example: thinking: ",
    ),
    "a dialect that does not work": (
        {"dialects": {"mine": {**MINE, "sample": "<di>"}}},
        "dialects.mine: sample: no call was found in it; it was read as '<di>'",
        "compare the markers with the sample",
    ),
    "a dialect with a name": (
        {"dialects": {"mine": {"name": "yours"}}},
        "dialects.mine.name: its name is the one that it stands under here",
        "leave `name` out",
    ),
    "a dialect called auto": (
        {"dialects": {"auto": MINE}},
        "dialects.auto: 'auto' has a meaning already",
        "call it otherwise",
    ),
    "a URL of another kind": (
        upstream(url="ftp://x/v1"),
        "upstreams.it.url: 'ftp://x/v1' is no http or https URL",
        "for example: https://openrouter.ai/api/v1",
    ),
    "a URL with a password": (
        upstream(url="https://me:secret@x/v1"),
        "upstreams.it.url: it has more in it than a host and a path",
        "put keys into `key`, or into `headers`",
    ),
    "a key with a line end": (
        upstream(key="abc\n"),
        "upstreams.it.key: it has a line break or a control character in it",
        "is it the right variable?",
    ),
    "a header's name": (
        upstream(headers={"X-A\r\nX-B": "1"}),
        "upstreams.it.headers: 'X-A\\r\\nX-B' cannot be the name of a header",
        "for example: X-Title",
    ),
    "a header's value": (
        upstream(headers={"X-A": "1\r\nX-B: 2"}),
        "upstreams.it.headers.X-A: it has a line break or a control character in it",
        "write it on one line",
    ),
    "an upstream's name of two lines": (
        {"upstreams": {"a\nb": LOCAL}},
        "upstreams.a\nb: 'a\\nb' cannot be told in a header",
        "call it by letters and digits",
    ),
    "an upstream's name that no header has": (
        {"upstreams": {"模型": LOCAL}},
        "upstreams.模型: '模型' cannot be told in a header",
        "call it by letters and digits",
    ),
    "no key, and others can ask": (
        {"host": "0.0.0.0"},
        "keys: others can reach '0.0.0.0', so that a key is required",
        KEY_HINT,
    ),
    "a short key, and others can ask": (
        {"host": "example.org", "keys": ["a-key-of-16-chars", "sk-1"]},
        "keys: a key has less than 16 characters, and others can try",
        KEY_HINT,
    ),
    "an upstream called demo": (
        {"demo": True, "upstreams": {"demo": LOCAL}},
        "upstreams.demo: `demo: true` adds an upstream of this name",
        "call yours otherwise",
    ),
    "the demo of no dialect": (
        {"demo": True, "models": {"k": "demo/kimi"}},
        "models.k: the demo speaks no dialect 'kimi'",
        "did you mean 'kimi_k2' or 'kimi_k3'?",
    ),
    "a tier of no dialect": (
        {"demo": True, "tiers": {"opus": "demo/hermse"}},
        "tiers.opus: the demo speaks no dialect 'hermse'",
        "did you mean 'hermes'?",
    ),
}


@pytest.mark.parametrize(("settings", "message", "hint"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(settings: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(BadSetting) as raised:
        routes(**settings)
    assert str(raised.value) == message
    assert raised.value.hint.startswith(hint) if hint.endswith(" ") else raised.value.hint == hint
    assert message.startswith(".".join(raised.value.path))


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "http://", "http://[::1/v1", "http://x:y/v1", "http://a b/", "http://a\n/"]
)
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(BadSetting, match="is no http or https URL"):
        routes(**upstream(url=url))


@pytest.mark.parametrize("url", ["http://x?a=b", "http://x/v1#y"])
def test_what_an_address_does_not_hold(url: str) -> None:
    with pytest.raises(BadSetting, match="more in it than a host and a path"):
        routes(**upstream(url=url))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]", "LocalHost"])
def test_on_loopback_anyone_may_ask(host: str) -> None:
    assert routes(host=host, default="local").find("x")
    assert routes(host=host, default="local", keys=["short"]).find("x")


def test_elsewhere_with_a_key() -> None:
    assert routes(host="0.0.0.0", default="local", keys=["a-key-of-16-chars"]).find("x")


def test_a_strangers_name_is_no_known_upstreams() -> None:
    """What OpenAI has encrypted is not for a server that is merely called so."""
    upstreams = {"openai": LOCAL, "mine": {"url": "https://api.openai.com/v1"}}
    models = {"a": {"upstream": "openai"}, "b": {"upstream": "mine"}}
    found = [route for model in models for route in routes(upstreams=upstreams, models=models).find(model)]
    assert [upstream_identity(route) for route in found] == ["@openai", "openai"]
