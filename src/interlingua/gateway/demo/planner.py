"""What the demo model answers to a conversation. Nothing is remembered: all is told by the request.

It does what the prompt asks for in the words of `prompt`, step by step; without such words it calls what fits best,
once. Behind the last step it says what came of it: an agent always comes to an end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from interlingua.common.jsontext.codec import write_json
from interlingua.common.schema.resolver import as_list, as_mapping
from interlingua.core.call_ids import Ids
from interlingua.core.reply import Call, Part, Reasoning, Reply, Text
from interlingua.core.tools import Offer, Tool
from interlingua.errors import BadInput
from interlingua.gateway.demo.argument_faker import Hints, fill
from interlingua.gateway.demo.prompt_language import Wish, own_words, steps
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.markers import markers

__all__ = ["reply_to"]

TIRED = 24
"""After how many turns with calls none is made that nobody has asked for: some agents go on without a user."""
MOST = 64
"""How many calls one reply has at most."""
SHORT = 160
"""How much is quoted of what others said."""
_CAREFUL = re.compile(
    "write|edit|delete|remove|patch|apply|create|update|replace|move|rename|kill|stop|close|send|schedule|cron|"
    "agents?|task|spawn|skill|workflow|goal|plan|ask|user|input|report|exit|finish|final|complete"
)
"""Words in names of tools that change things, ask the user, start others or end the work."""
_LAST = re.compile("finish|final|answer|complet(e|ion)|done|submit")
"""Words in names of tools that end the work."""
_NO_CALLS = re.compile(r"\b(?:do not|don't|never) (?:use|call) (?:any )?tools?\b|\btext only\b", re.I)
"""What agents say that want a summary, and offer their tools all the same."""
_SEVERAL = re.compile("and|both|two|twice|several|each|parallel")


@dataclass(frozen=True)
class _Talk:
    """Where a conversation stands."""

    prompt: str = ""
    turns: int = 0
    """How often tools were called since the prompt."""
    results: tuple[str, ...] = ()
    """What the last ones gave."""
    ids: tuple[str, ...] = ()
    """Of all calls so far."""
    tired: bool = False
    topic: str = ""
    """What the system prompt says."""


def reply_to(body: Mapping[str, Any], dialect: Dialect) -> Reply:
    """The reply to the body of a chat-completions request, whatever it is."""
    offer = _offer(body)
    talk = _talk([as_mapping(message) for message in as_list(body.get("messages"))], offer)
    hints = Hints(f"demo/{dialect.name}", talk.prompt)
    calls = _calls(_wishes(body, offer, talk), offer, talk, hints, dialect)
    said: list[Part] = [*calls] if calls else [Text(_words(body, talk, hints, dialect))]
    if _thinks(body, dialect):
        plan = f"I will call {' and '.join(call.name for call in calls)}." if calls else "No call is left to make."
        said.insert(0, Reasoning(plan))
    return Reply(parts=said, stop_reason="tool_calls" if calls else "stop")


# ── what to call ──────────────────────────────────────────────────────────────────────────────────────────────────


def _wishes(body: Mapping[str, Any], offer: Offer, talk: _Talk) -> list[Wish]:
    """The calls to make now; none: it is time for words."""
    mode, named = _choice(body)
    tools = {name: tool for name in offer.names if (tool := offer.get(name)) and (not named or name in named)}
    if not tools or mode == "none":
        return []
    asked = [[wish for wish in step if wish.tool in tools] for step in steps(talk.prompt, offer)]
    if body.get("parallel_tool_calls") is False:
        asked = [[wish] for step in asked for wish in step]
    asked = [step for step in asked if step]
    if talk.turns < len(asked):
        return asked[talk.turns][:MOST]
    over = bool(asked) or talk.turns > 0 or talk.tired or not talk.prompt or bool(_NO_CALLS.search(talk.prompt))
    if not over:
        return _fitting(tools, talk.prompt, several=body.get("parallel_tool_calls") is not False)
    if mode != "required":
        return []
    last = next((name for name in tools if _has(_parts(name), _LAST)), None)
    return [Wish(last)] if last else _fitting(tools, talk.prompt, several=False)


def _fitting(tools: Mapping[str, Tool], prompt: str, several: bool) -> list[Wish]:
    """What fits the prompt best. Two calls, if it seems to ask for more than one thing."""
    words = set(re.findall(r"\w+", prompt.lower()))
    best = sorted(tools, key=lambda name: -_score(tools[name], words))
    named = [name for name in best if name.lower() in words and not _has(_parts(name), _CAREFUL)]
    chosen = (named or best)[:2]
    if several and len(named) < 2 and _has(words, _SEVERAL):
        chosen = [chosen[0], chosen[0]]
    elif len(named) < 2 or not several:
        chosen = chosen[:1]
    return [Wish(name) for name in chosen]


def _score(tool: Tool, words: set[str]) -> int:
    params = {key.lower() for key in as_mapping(tool.schema.get("properties"))}
    about = {word for word in re.findall(r"\w{4,}", tool.description[:SHORT].lower()) if word in words}
    score = 3 * len(_parts(tool.name) & words) + 2 * bool(params & {"command", "cmd"}) + min(len(about), 2)
    return score - 8 * _has(_parts(tool.name), _CAREFUL)


def _parts(name: str) -> set[str]:
    """The words of a name: `WebSearch`, `web_search`."""
    return set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))


def _has(words: set[str], one: re.Pattern[str]) -> bool:
    return any(one.fullmatch(word) for word in words)


def _calls(wishes: list[Wish], offer: Offer, talk: _Talk, hints: Hints, dialect: Dialect) -> list[Call]:
    """The calls with all their arguments, and no two alike that nobody asked for. Kimi's ids count on."""
    ids = Ids(talk.ids, f"{hints.model}/{len(talk.ids)}")
    ids.style = dialect.ids
    numbered = any("{n}" in str(header) for header in getattr(dialect.shape, "header", ()))
    calls: list[Call] = []
    for nth, wish in enumerate(wishes):
        tool = offer.get(wish.tool)
        of_tool = replace(hints, nth=nth, careful=_has(_parts(wish.tool), _CAREFUL))
        args = write_json(fill(tool.schema if tool else {}, of_tool, wish.args))
        number = len(talk.ids) + len(calls)
        if not wish.args and not wish.sure and any((call.name, call.arguments) == (wish.tool, args) for call in calls):
            continue
        native = f"functions.{wish.tool}:{number}" if numbered else None
        calls.append(Call(ids.unique(native, number), wish.tool, args))
    return calls


# ── what to say ───────────────────────────────────────────────────────────────────────────────────────────────────


def _words(body: Mapping[str, Any], talk: _Talk, hints: Hints, dialect: Dialect) -> str:
    """What is said where nothing is called."""
    format = as_mapping(body.get("response_format"))
    if format.get("type") == "json_schema":
        return write_json(fill(as_mapping(format.get("json_schema")).get("schema"), hints))
    if format.get("type") == "json_object":
        return write_json({"answer": f"hello from {hints.model}"})
    if talk.results:
        return f"Done. {' '.join(_quoted(result, dialect) for result in talk.results)}"
    if not body.get("tools") and re.search(r"\btitle\b", talk.topic + talk.prompt[:SHORT]):
        return f"A word with {hints.model}"
    me = f"I am {hints.model}, a script that writes as a model does: {_kind(dialect)}."
    how = "Offer me a tool, name it, and give it key=value: I will call it."
    return f"You said: {_quoted(talk.prompt, dialect)} {me} {how}" if talk.prompt else f"{me} {how}"


def _kind(dialect: Dialect) -> str:
    """Which models speak it. What the summary says of their markers would be structure."""
    return dialect.summary.partition(":")[0]


def _quoted(text: str, dialect: Dialect) -> str:
    """The beginning of a text, without what would be structure in this dialect."""
    begin = " ".join(markers(*dialect.markers).without(text[: 4 * SHORT]).split())
    return f"“{begin if len(begin) <= SHORT else begin[:SHORT] + '…'}”"


def _thinks(body: Mapping[str, Any], dialect: Dialect) -> bool:
    """Whether the dialect can write thinking, and nobody has switched it off."""
    template = as_mapping(body.get("chat_template_kwargs"))
    off = (
        body.get("reasoning_effort") == "none"
        or as_mapping(body.get("thinking")).get("type") == "disabled"
        or as_mapping(body.get("reasoning")).get("enabled") is False
        or as_mapping(body.get("reasoning")).get("effort") == "none"
        or False in (body.get("enable_thinking"), template.get("enable_thinking"), template.get("thinking"))
    )
    return not off and bool(dialect.thinking or dialect.router or dialect.grammar is None)


# ── what was said ─────────────────────────────────────────────────────────────────────────────────────────────────


def _offer(body: Mapping[str, Any]) -> Offer:
    """The tools that can be understood."""
    tools: list[Tool] = []
    for tool in as_list(body.get("tools")):
        try:
            tools += Tool.read_all(tool)
        except BadInput:
            continue
    return Offer(tools)


def _choice(body: Mapping[str, Any]) -> tuple[str, set[str]]:
    """Whether calls may, must or must not be made, and of which tools; none named: of all."""
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        return choice, set()
    choice = as_mapping(choice)
    allowed = as_mapping(choice.get("allowed_tools"))
    if allowed:
        return str(allowed.get("mode")), {_named(tool) for tool in as_list(allowed.get("tools"))}
    name = _named(choice)
    return ("required", {name}) if name else ("auto", set())


def _named(tool: object) -> str:
    tool = as_mapping(tool)
    inner = as_mapping(tool.get("function") or tool.get("custom") or tool)
    return str(inner.get("name") or "")


def _talk(messages: list[Mapping[str, Any]], offer: Offer) -> _Talk:
    """Its prompt is the last thing since the last answer that tells what to call, else the last that the user said."""
    begin = 1 + max((n for n in range(len(messages) - 1) if _is_answer(messages, n)), default=-1)
    users = [n for n in range(begin, len(messages)) if _role(messages[n]) == "user"]
    said = [(n, words) for n in users if (words := list(filter(None, map(own_words, _texts(messages[n])))))]
    asking = [(n, asked) for n, words in said if (asked := [text for text in words if steps(text, offer)])]
    at, prompt = (asking or said or [(begin, [])])[-1]
    turns = [n for n in range(begin, len(messages)) if _is_turn(messages, n)]
    ending = list(takewhile(lambda message: _role(message) != "assistant", reversed(messages))) if turns else []
    return _Talk(
        "\n".join(prompt),
        sum(n > at for n in turns) if asking else len(turns),
        tuple(_text(message) for message in reversed(ending) if _role(message) == "tool")[:4],
        tuple(str(as_mapping(call).get("id")) for message in messages for call in as_list(message.get("tool_calls"))),
        sum(_is_turn(messages, n) for n in range(len(messages))) >= TIRED,
        " ".join(_text(message)[:1000] for message in messages if _role(message) == "system"),
    )


def _role(message: Mapping[str, Any]) -> str:
    """Some tell results in a user's message."""
    role = "system" if message.get("role") == "developer" else str(message.get("role"))
    return "tool" if role == "user" and _text(message).startswith("Observation:") else role


def _is_turn(messages: list[Mapping[str, Any]], n: int) -> bool:
    """Whether the model has called tools here."""
    told = n + 1 < len(messages) and _role(messages[n + 1]) == "tool"
    return _role(messages[n]) == "assistant" and (bool(messages[n].get("tool_calls")) or told)


def _is_answer(messages: list[Mapping[str, Any]], n: int) -> bool:
    """Whether the model has said its last word here."""
    goes_on = n + 1 < len(messages) and _role(messages[n + 1]) == "assistant"
    return _role(messages[n]) == "assistant" and not _is_turn(messages, n) and not goes_on


def _texts(message: Mapping[str, Any]) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [str(as_mapping(part).get("text") or "") for part in as_list(content)]


def _text(message: Mapping[str, Any]) -> str:
    return "\n".join(_texts(message))
