"""Memory of what model servers refuse."""

from __future__ import annotations

from interlingua.gateway.routing.routes import Route, Routes
from interlingua.gateway.settings.schema import Settings, Upstream
from interlingua.gateway.upstream.capabilities import CapabilityMemory
from interlingua.translation.refusal_correction import FACT_SECONDS, MAX_REMEMBERED_FACTS
from interlingua.upstreams.refusals import Refusal

NO_IMAGES = Refusal("no-images")


def route(model: str = "m") -> Route:
    [found] = Routes(Settings(upstreams={"local": Upstream(url="http://127.0.0.1:9/v1")})).find(model)
    return found


def test_facts_are_kept_together_and_logged_once() -> None:
    reports: list[str] = []
    memory = CapabilityMemory(lambda _, message, __: reports.append(message))
    for refusal in (NO_IMAGES, Refusal("no-tool-parser"), Refusal("reply-limit", largest=8192), NO_IMAGES):
        memory.learn(route(), "client", refusal)
    profile = memory.apply(route(), "client").profile
    assert (profile.vision, profile.unparsed_choices, profile.largest) == (False, ("auto",), 8192)
    assert len(reports) == 3


def test_refusal_of_one_client_changes_no_requests_of_others() -> None:
    reports: list[str] = []
    memory = CapabilityMemory(lambda _, message, __: reports.append(message))
    memory.learn(route(), "one", NO_IMAGES)
    assert not memory.apply(route(), "one").profile.vision
    assert memory.apply(route(), "other").profile.vision
    memory.learn(route(), "other", NO_IMAGES)
    assert len(reports) == 1, "one line for a model"


def test_facts_are_forgotten_because_a_server_may_change() -> None:
    now = 0.0
    memory = CapabilityMemory(lambda *_: None, lambda: now)
    memory.learn(route(), "client", NO_IMAGES)
    now = FACT_SECONDS / 2
    memory.learn(route(), "client", Refusal("no-tool-parser"))
    now = FACT_SECONDS
    assert not memory.apply(route(), "client").profile.vision
    now = FACT_SECONDS + 1
    assert memory.apply(route(), "client").profile == route().profile
    memory.learn(route(), "client", NO_IMAGES)
    assert not memory.apply(route(), "client").profile.vision


def test_facts_are_bounded() -> None:
    memory = CapabilityMemory(lambda *_: None)
    for n in range(MAX_REMEMBERED_FACTS + 1):
        memory.learn(route(f"m{n}"), "client", NO_IMAGES)
    assert memory.apply(route("m0"), "client").profile.vision
    assert not memory.apply(route("m1"), "client").profile.vision


def test_window_of_a_probe_is_newer_than_that_of_a_refusal() -> None:
    memory = CapabilityMemory(lambda *_: None)
    memory.learn(route(), "client", Refusal("window", window=4096, input=3000, reply=2000))
    assert memory.apply(route(), "client").window == 4096
