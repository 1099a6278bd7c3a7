"""Checks of the server: reachable, key, engine, models, window. They need no reply of a model."""

from __future__ import annotations

from interlingua.common.name_list import join_names
from interlingua.gateway.routing.routes import Route
from interlingua.gateway.upstream.listed_models import MISSING_STATUSES
from interlingua.verification.doctor.check import CheckResult, odd_result, ok_result, skipped_result, wrong_result
from interlingua.verification.probing.server_facts import ENGINES, ServerFacts
from interlingua.verification.reply_reading import describe_unreadable, read_reply
from interlingua.verification.run.preflight import KEY_HINT, URL_HINT, explain_model_problem, is_about_key

__all__ = ["LOG_HINT", "TRY_LATER_HINT", "check_server"]

AGENT_WINDOW_TOKENS = 32_768
"""Context window that coding agents need at least: their first request has about 20,000 tokens."""
MAX_LISTED_MODELS = 6
START_HINT = "check the URL, and that the server is running"
LOG_HINT = "check the URL, and the log of the server"
TRY_LATER_HINT = "try again later, or look at the log of the server"
_WINDOW_FLAGS = {
    "vllm": "--max-model-len",
    "sglang": "--context-length",
    "llama.cpp": "--ctx-size",
    "ollama": "OLLAMA_CONTEXT_LENGTH",
}


def check_server(facts: ServerFacts, route: Route, model: str) -> list[CheckResult]:
    """Return the checks. If the last one is wrong, requests to a model make no sense.

    Args:
        facts: What the server has said about itself.
        route: The upstream.
        model: The model id; "" if none was chosen.
    """
    reachable = _check_reachable(facts, route)
    if reachable.status == "wrong":
        return [reachable]
    key = _check_key(facts, route)
    if key.status == "wrong":
        return [reachable, key]
    checks = [reachable, key, *_check_list(facts), _check_engine(facts, route)]
    if model and facts.window(model):
        checks.append(_check_window(facts, model))
    checks.append(_check_model(facts, model))
    return checks


def _check_reachable(facts: ServerFacts, route: Route) -> CheckResult:
    listing = facts.listing
    if listing.status:
        return ok_result("reachable", f"answers in {1000 * listing.seconds:.0f} ms")
    reason = listing.error or f"no answer from {route.upstream.url}"
    return wrong_result("reachable", reason, START_HINT if listing.is_unreachable else LOG_HINT)


def _check_key(facts: ServerFacts, route: Route) -> CheckResult:
    listing, has_key = facts.listing, bool(route.upstream.key)
    if is_about_key(listing):
        problem = "the server refuses the key" if has_key else "the server needs a key"
        return wrong_result("key", f"{problem} ({listing.status}): {read_reply(listing).error}", KEY_HINT)
    if not facts.has_list:
        return skipped_result("key", "not known: the server has not returned a model list")
    return ok_result("key", "accepted" if has_key else "none is needed for the model list")


def _check_list(facts: ServerFacts) -> list[CheckResult]:
    """Return what the server has sent in place of a model list. Servers without such a list are usual."""
    listing, reply = facts.listing, read_reply(facts.listing)
    if facts.has_list or listing.status in MISSING_STATUSES:
        return []
    if listing.is_success:
        is_json = not reply.unreadable_events
        message = "the reply is not a list of models" if is_json else describe_unreadable(listing, reply)
        return [odd_result("model list", message, URL_HINT)]
    fix = TRY_LATER_HINT if listing.status == 429 or listing.status >= 500 else ""
    return [odd_result("model list", f"status {listing.status}: {reply.error}", fix)]


def _check_engine(facts: ServerFacts, route: Route) -> CheckResult:
    name = " ".join(filter(None, (facts.engine, facts.version)))
    if not facts.engine:
        return ok_result("engine", "unknown: a provider, or a server that does not name itself")
    if facts.engine in ENGINES and route.profile.name not in ("any", facts.engine):
        return odd_result(
            "engine", f"{name}, but the profile is {route.profile.name!r}", f"set profile: {facts.engine}"
        )
    return ok_result("engine", name)


def _check_window(facts: ServerFacts, model: str) -> CheckResult:
    window = facts.window(model)
    if window >= AGENT_WINDOW_TOKENS:
        return ok_result("window", f"{window:,} tokens")
    flag = _WINDOW_FLAGS.get(facts.engine, "")
    fix = f"start the server with a larger {flag}" if flag else "choose a model with a larger window"
    return odd_result("window", f"{window:,} tokens; coding agents need {AGENT_WINDOW_TOKENS:,}", fix)


def _check_model(facts: ServerFacts, model: str) -> CheckResult:
    count = len(facts.models)
    if not model:
        listed = f"; the server has {join_names(facts.models, MAX_LISTED_MODELS)}" if count else ""
        fix = "add --model" if facts.has_list else f"add --model, or {URL_HINT}"
        return odd_result("model", f"not checked: none is chosen{listed}", fix)
    if problem := explain_model_problem(facts, model):
        return wrong_result("model", problem[0], problem[1])
    others = f" (one of {count})" if count > 1 else ""
    return ok_result("model", f"{model}{others}" if count else f"{model}; the server lists no models")
