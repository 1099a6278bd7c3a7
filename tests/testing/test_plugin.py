"""The pytest plugin, as a user's tests see it: each test runs pytest on a small test suite."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
import yaml
from _pytest.pytester import SysModulesSnapshot

from tests.support import upstream_server as up
from tests.support.upstream_server import UpstreamServer

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def cassette_config():
    return {{"upstream": {url!r}}}
"""
SUITE = """
import asyncio

import anthropic
import openai
import pytest

QUESTION = [{"role": "user", "content": "Say hello."}]

def test_fixture(openai_client):
    reply = openai_client.chat.completions.create(model="hello", messages=QUESTION)
    assert reply.choices[0].message.content == "Hello"

@pytest.mark.cassette
def test_client_of_the_program():
    with openai.OpenAI() as client:
        assert client.responses.create(model="hello", input="Say hello.").output_text == "Hello"
    with anthropic.Anthropic() as client:
        message = client.messages.create(model="hello", max_tokens=10, messages=QUESTION)
    assert message.content[0].text == "Hello"

class TestStream:
    @pytest.mark.parametrize("text", ["plain", "with/slash"])
    def test_text(self, anthropic_client, text):
        question = [{"role": "user", "content": text}]
        with anthropic_client.messages.stream(model="hello", max_tokens=10, messages=question) as stream:
            assert stream.get_final_text() == "Hello"

def test_async(async_openai_client, async_anthropic_client):
    async def ask():
        async with async_openai_client as openai, async_anthropic_client as anthropic:
            reply = await openai.responses.create(model="hello", input="Say hello.")
            message = await anthropic.messages.create(model="hello", max_tokens=10, messages=QUESTION)
        return reply.output_text, message.content[0].text

    assert asyncio.run(ask()) == ("Hello", "Hello")

def test_url(cassette_url, cassette):
    assert cassette_url == cassette.url + "/v1" == cassette.openai_url
"""
ONE_TEST = """
import json, os, urllib.error, urllib.request

def ask(url, text):
    body = json.dumps({{"model": "hello", "messages": [{{"role": "user", "content": text}}]}}).encode()
    headers = {{"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}}
    try:
        with urllib.request.urlopen(urllib.request.Request(url + "/chat/completions", body, headers)) as response:
            return json.load(response)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        error.close()
        raise

def test_it(cassette_url):
    for text in {questions!r}:
        assert ask(cassette_url, text) == "Hello"
"""


def one_test(*questions: str) -> str:
    """Return a module with one test that asks these questions, without an SDK: to import one takes a second."""
    return ONE_TEST.format(questions=questions)


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, upstream: UpstreamServer) -> Suite:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # no other plugin
    # Modules stay imported between the runs, except those of the suite: each import of an SDK takes a second.
    snapshot = lambda: SysModulesSnapshot(lambda name: name not in ("conftest", "test_agent", "other_plugin"))  # noqa: E731
    monkeypatch.setattr(pytester, "_Pytester__take_sys_modules_snapshot", snapshot)
    for name in ("CI", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    upstream.add("hello", up.chat_stream("Hello"))
    pytester.makeconftest(CONFTEST.format(url=upstream.url))
    return Suite(pytester, upstream)


class Suite:
    """A user's test suite in an empty folder."""

    def __init__(self, pytester: pytest.Pytester, upstream: UpstreamServer) -> None:
        self.pytester = pytester
        self.folder = pytester.path
        self._upstream = upstream

    def run(self, *options: str, **outcomes: int) -> str:
        """Run the tests, check the numbers of outcomes, and return the output."""
        result = self.pytester.runpytest_inprocess("-p", "interlingua.testing.plugin", *options)
        result.assert_outcomes(**outcomes)
        return result.stdout.str()

    def run_offline(self, *options: str, **outcomes: int) -> str:
        """Run the tests and check that no request was sent."""
        before = self.requests()
        output = self.run(*options, **outcomes)
        assert self.requests() == before
        return output

    def requests(self) -> int:
        return sum(self._upstream.count(model) for model in ("hello", "other"))

    @property
    def cassettes(self) -> list[str]:
        return sorted(path.name for path in self.folder.rglob("*.yaml"))


def test_tests_are_recorded_once_and_replayed_offline(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.pytester.makepyfile(test_agent=SUITE)
    suite.run(passed=6)
    assert suite.cassettes == [
        "TestStream.test_text[plain].yaml",
        "TestStream.test_text[with-slash]-1d188a6a.yaml",
        "test_async.yaml",
        "test_client_of_the_program.yaml",
        "test_fixture.yaml",
    ]
    assert (suite.folder / "cassettes" / "test_agent" / "test_fixture.yaml").exists()
    suite.run_offline(passed=6)
    monkeypatch.setenv("CI", "true")
    suite.run_offline(passed=6)


def test_nothing_is_recorded_in_ci(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.pytester.makepyfile(test_agent=one_test("Hi"))
    monkeypatch.setenv("CI", "true")
    output = suite.run_offline(failed=1)
    assert re.search(r"no recording for this request: the cassette \S+test_it.yaml does not exist", output)
    assert "record it: pytest --cassette-mode=new_episodes" in output
    assert not suite.cassettes
    suite.run("--cassette-mode=once", passed=1)


def test_changed_request_fails_with_the_difference(suite: Suite) -> None:
    suite.pytester.makepyfile(test_agent=one_test("Hi"))
    suite.run(passed=1)
    suite.pytester.makepyfile(test_agent=one_test("Hello"))
    output = suite.run_offline(failed=1)
    assert "requests without a recording" in output
    assert "The nearest one is test_it.yaml, exchange 1; the request differs in:" in output
    assert "message 1 (user): “Hello”, recorded “Hi”" in output


def test_request_without_recording_fails_a_test_that_handles_the_error(suite: Suite) -> None:
    program = """
import pytest

@pytest.mark.cassette(mode="none")
def test_handled(cassette):
    cassette.allow_misses = {allowed}
    try:
        ask(cassette.openai_url, "hi")
    except OSError:
        pass
"""
    suite.pytester.makepyfile(test_agent=one_test() + program.format(allowed=False))
    assert "no recording for this request" in suite.run_offline(failed=1, passed=1)
    suite.pytester.makepyfile(test_agent=one_test() + program.format(allowed=True))
    suite.run_offline(passed=2)


def test_record_modes(suite: Suite) -> None:
    def recorded() -> list[str]:
        (path,) = suite.folder.rglob("*.yaml")
        exchanges = yaml.safe_load(path.read_text())["exchanges"]
        return [one["request"]["body"]["messages"][0]["content"] for one in exchanges]

    suite.pytester.makepyfile(test_agent=one_test("a", "b"))
    suite.run(passed=1)
    suite.pytester.makepyfile(test_agent=one_test("a", "c"))
    suite.run_offline(failed=1)
    suite.run_offline("--cassette-mode=none", failed=1)
    suite.run("--cassette-mode=new_episodes", passed=1)
    assert recorded() == ["a", "b", "c"]
    before = suite.requests()
    suite.run("--cassette-mode=all", passed=1)
    assert (recorded(), suite.requests() - before) == (["a", "c"], 2)
    suite.run("--cassette-mode=rewrite", passed=1)
    assert recorded() == ["a", "c"]


def test_replies_to_a_request_that_is_sent_again(suite: Suite, upstream: UpstreamServer) -> None:
    """`once` and `all` record each reply, `new_episodes` one. Further requests get the last one."""
    for text in ("one", "two", "three", "four", "five"):
        upstream.add("again", up.chat_stream(text))
    program = """
def test_again(cassette_url, cassette):
    replies = [ask(cassette_url, "Question") for _ in range({requests})]
    assert replies == {replies}
"""

    def write_test(*replies: str) -> None:
        text = one_test().replace('"hello"', '"again"') + program.format(requests=len(replies), replies=list(replies))
        suite.pytester.makepyfile(test_agent=text)

    write_test("one", "two")
    suite.run("-k", "again", passed=1)
    write_test("one", "two", "two")
    for mode in ("none", "once", "new_episodes"):
        suite.run("-k", "again", f"--cassette-mode={mode}", passed=1)
    write_test("three", "four")
    suite.run("-k", "again", "--cassette-mode=all", passed=1)
    suite.run("-k", "again", passed=1)
    (path,) = suite.folder.rglob("*.yaml")
    path.unlink()
    write_test("five", "five")
    suite.run("-k", "again", "--cassette-mode=new_episodes", passed=1)
    assert upstream.count("again") == 5


def test_mode_of_the_settings_file(suite: Suite) -> None:
    suite.pytester.makeini("[pytest]\ncassette_mode = none\n")
    suite.pytester.makepyfile(test_agent=one_test("Hi"))
    suite.run_offline(failed=1)
    suite.run("--cassette-mode=once", passed=1)
    suite.run_offline(passed=1)


def test_options_of_the_marker(suite: Suite) -> None:
    program = """
import urllib.error, pytest

@pytest.mark.cassette("shared.yaml", replace={"[0-9]+": "N"})
def test_replaced(cassette_url):
    assert ask(cassette_url, "run 1") == ask(cassette_url, "run 2") == "Hello"

@pytest.mark.cassette("shared.yaml", replace={"[0-9]+": "N"}, fault="503-empty", cut="byte")
def test_fault(cassette_url):
    with pytest.raises(urllib.error.HTTPError, match="503"):
        ask(cassette_url, "run 3")
"""
    suite.pytester.makepyfile(test_agent=one_test() + program)
    suite.run(passed=3)
    assert suite.cassettes == ["shared.yaml"]


def test_test_with_mode_none_never_records(suite: Suite) -> None:
    marker = "import pytest\npytestmark = pytest.mark.cassette(mode='none')\n"
    suite.pytester.makepyfile(test_agent=marker + one_test("Hi"))
    assert 'this test never records (mode="none")' in suite.run_offline("--cassette-mode=all", failed=1)


def test_secrets_are_not_recorded(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-secret-of-the-user")
    url = suite._upstream.url
    suite.pytester.makeconftest("")
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    suite.pytester.makepyfile(test_agent=one_test("the-secret-of-the-user"))
    suite.run(passed=1)
    (path,) = suite.folder.rglob("*.yaml")
    assert "secret" not in path.read_text()
    (request,) = suite._upstream.wait_for_requests("hello")[-1:]
    assert request.headers["authorization"] == "Bearer the-secret-of-the-user"
    suite.run_offline(passed=1)


def test_invalid_option_is_an_error_of_the_test(suite: Suite) -> None:
    suite.pytester.makepyfile(
        test_agent="""
        import pytest

        @pytest.mark.cassette(cut="words")
        def test_it():
            pass
        """
    )
    assert "a reply cannot be cut by 'words'" in suite.run(errors=1)


def test_option_of_another_plugin_does_not_break_the_run(suite: Suite) -> None:
    suite.pytester.makepyfile(
        other_plugin="def pytest_addoption(parser):\n    parser.addoption('--cassette-mode', default='mine')\n",
        test_agent="def test_it(pytestconfig):\n    assert pytestconfig.getoption('--cassette-mode') == 'mine'\n",
    )
    suite.pytester.syspathinsert()
    result = suite.pytester.runpytest_inprocess("-p", "other_plugin", "-p", "interlingua.testing.plugin")
    result.assert_outcomes(passed=1)


def test_suite_runs_with_xdist(suite: Suite) -> None:
    tests = "\n\n".join(f"def test_{n}(cassette_url):\n    assert ask(cassette_url, 'Question {n}')" for n in range(4))
    suite.pytester.makepyfile(test_agent=one_test() + tests)
    result = suite.pytester.runpytest_subprocess("-p", "interlingua.testing.plugin", "-p", "xdist", "-n", "2")
    result.assert_outcomes(passed=5)
    assert len(suite.cassettes) == 4
    suite.run_offline(passed=5)


def test_plugin_is_registered_and_imports_nothing() -> None:
    """pytest imports it in every run of every user who has Interlingua."""
    (entry,) = (entry for entry in entry_points(group="pytest11") if entry.name == "interlingua")
    assert entry.value == "interlingua.testing.plugin"
    program = (
        "import sys, pytest; before = set(sys.modules); import interlingua.testing.plugin; "
        "print(sorted(set(sys.modules) - before))"
    )
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert modules.strip() == "['interlingua', 'interlingua.testing', 'interlingua.testing.plugin']"


def test_run_without_cassettes_is_not_changed(suite: Suite) -> None:
    """In a process of its own: pytest warns if a plugin is imported early, and warnings are errors here."""
    suite.pytester.makepyfile(
        test_agent="def test_it():\n    import os\n    assert 'OPENAI_BASE_URL' not in os.environ\n"
    )
    options = ("-p", "interlingua.testing.plugin", "--strict-markers", "-W", "error")
    result = suite.pytester.runpytest_subprocess(*options)
    result.assert_outcomes(passed=1)
    assert "interlingua" not in result.stdout.str().replace(str(suite.folder), "")
