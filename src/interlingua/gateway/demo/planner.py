"""Planner of the demo model's replies. It is stateless: the reply depends only on the request.

If the prompt requests calls in the syntax of `prompt_language`, the model makes them step by step. Otherwise it calls
the best matching tool once. After the last step it reports the results as text, so that an agent always terminates.
Asked for a summary of the conversation, it names the steps that remain: an agent that goes on from the summary alone
finishes its task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from interlingua.common.jsontext.codec import read_json, write_json
from interlingua.common.schema.resolver import as_list, as_mapping
from interlingua.core.call_ids import CallIdAllocator
from interlingua.core.reply import Call, Part, Reasoning, Reply, Text
from interlingua.core.tools import Tool, ToolSet
from interlingua.errors import BadInput
from interlingua.gateway.demo.argument_faker import ArgumentHints, fake_arguments
from interlingua.gateway.demo.prompt_language import CallRequest, parse_steps, user_text
from interlingua.parsing.dialect import Dialect
from interlingua.parsing.markers import compile_markers

__all__ = ["is_sloppy", "plan_reply"]

MAX_TOOL_TURNS = 24
"""Number of turns with calls after which only requested calls are made: some agents continue without a user."""
MAX_CALLS_PER_REPLY = 64
"""Maximum number of calls in one reply."""
MAX_QUOTE_CHARS = 160
"""Maximum length of a quotation from the prompt or a tool result."""
_SIDE_EFFECT_WORD = re.compile(
    "write|edit|delete|remove|patch|apply|create|update|replace|move|rename|kill|stop|close|send|schedule|cron|"
    "agents?|task|spawn|skill|workflow|goal|plan|ask|user|input|report|exit|finish|final|complete"
)
"""Words in names of tools that have side effects, ask the user, start other agents or end the work."""
_FINAL_TOOL_WORD = re.compile("finish|final|answer|complet(e|ion)|done|submit")
"""Words in names of tools that end the work."""
_NO_TOOLS_REQUEST = re.compile(
    r"\b(?:do not|don't|never) (?:use|call) (?:any )?tools?\b|\bcall no tools?\b|\btext only\b", re.I
)
"""Phrases in prompts that request text only, such as a summary, although the request contains tools."""
_SUMMARY_REQUEST = re.compile(r"\bsummar(?:y|i[sz]e)\b", re.I)
_SLOPPY_REQUEST = re.compile(r"\bsloppily\b", re.I)
"""A word in prompts with which the model writes its calls wrong, unless its request constrains it."""
_PLURAL_WORD = re.compile("and|both|two|twice|several|each|parallel")


@dataclass(frozen=True)
class _Conversation:
    """State of a conversation."""

    prompt: str = ""
    turns: int = 0
    """Number of turns with tool calls since the prompt."""
    results: tuple[str, ...] = ()
    """Results of the last tool calls."""
    ids: tuple[str, ...] = ()
    """Ids of all calls so far."""
    turn_limit_reached: bool = False
    system_prompt: str = ""
    """Text of the system prompt."""


def plan_reply(body: Mapping[str, Any], dialect: Dialect) -> Reply:
    """Return the reply to the body of a chat completions request. It never raises."""
    tool_set = _read_tools(body)
    messages = [as_mapping(message) for message in as_list(body.get("messages"))]
    request_index = _find_summary_request(body, messages)
    if request_index is not None:
        summarized = messages[:request_index] + messages[request_index + 1 :]
        return Reply(parts=[Text(_write_summary(summarized, tool_set))], stop_reason="stop")
    conversation = _read_conversation(messages, tool_set)
    hints = ArgumentHints(f"demo/{dialect.name}", conversation.prompt)
    calls = _build_calls(_plan_calls(body, tool_set, conversation), tool_set, conversation, hints, dialect)
    parts: list[Part] = [*calls] if calls else [Text(_reply_text(body, conversation, hints, dialect))]
    if _should_think(body, dialect):
        plan = f"I will call {' and '.join(call.name for call in calls)}." if calls else "No call is needed."
        parts.insert(0, Reasoning(plan))
    return Reply(parts=parts, stop_reason="tool_calls" if calls else "stop")


def is_sloppy(body: Mapping[str, Any]) -> bool:
    """Return whether the prompt asks for malformed calls."""
    messages = [as_mapping(message) for message in as_list(body.get("messages"))]
    return any(_role(message) == "user" and _SLOPPY_REQUEST.search(_text(message)) for message in messages)


# ── tool calls ────────────────────────────────────────────────────────────────────────────────────────────────────


def _plan_calls(body: Mapping[str, Any], tool_set: ToolSet, conversation: _Conversation) -> list[CallRequest]:
    """Return the calls of this reply; an empty list if the reply is text."""
    mode, allowed = _tool_choice(body)
    tools = {name: tool for name in tool_set.names if (tool := tool_set.get(name)) and (not allowed or name in allowed)}
    if not tools or mode == "none":
        return []
    requested_steps = [
        [request for request in step if request.tool in tools] for step in parse_steps(conversation.prompt, tool_set)
    ]
    if body.get("parallel_tool_calls") is False:
        requested_steps = [[request] for step in requested_steps for request in step]
    requested_steps = [step for step in requested_steps if step]
    if conversation.turns < len(requested_steps):
        return requested_steps[conversation.turns][:MAX_CALLS_PER_REPLY]
    is_finished = (
        bool(requested_steps)
        or conversation.turns > 0
        or conversation.turn_limit_reached
        or not conversation.prompt
        or bool(_NO_TOOLS_REQUEST.search(conversation.prompt))
    )
    if not is_finished:
        return _choose_tools(tools, conversation.prompt, allow_several=body.get("parallel_tool_calls") is not False)
    if mode != "required":
        return []
    final_tool = next((name for name in tools if _has_matching_word(_name_words(name), _FINAL_TOOL_WORD)), None)
    return [CallRequest(final_tool)] if final_tool else _choose_tools(tools, conversation.prompt, allow_several=False)


def _choose_tools(tools: Mapping[str, Tool], prompt: str, allow_several: bool) -> list[CallRequest]:
    """Return the best matching tool, or two calls if the prompt seems to request more than one."""
    words = set(re.findall(r"\w+", prompt.lower()))
    ranked = sorted(tools, key=lambda name: -_relevance(tools[name], words))
    mentioned = [
        name
        for name in ranked
        if name.lower() in words and not _has_matching_word(_name_words(name), _SIDE_EFFECT_WORD)
    ]
    chosen = (mentioned or ranked)[:2]
    if allow_several and len(mentioned) < 2 and _has_matching_word(words, _PLURAL_WORD):
        chosen = [chosen[0], chosen[0]]
    elif len(mentioned) < 2 or not allow_several:
        chosen = chosen[:1]
    return [CallRequest(name) for name in chosen]


def _relevance(tool: Tool, words: set[str]) -> int:
    params = {key.lower() for key in as_mapping(tool.schema.get("properties"))}
    description_words = {
        word for word in re.findall(r"\w{4,}", tool.description[:MAX_QUOTE_CHARS].lower()) if word in words
    }
    score = (
        3 * len(_name_words(tool.name) & words) + 2 * bool(params & {"command", "cmd"}) + min(len(description_words), 2)
    )
    return score - 8 * _has_matching_word(_name_words(tool.name), _SIDE_EFFECT_WORD)


def _name_words(name: str) -> set[str]:
    """Return the words of a name in camel case or snake case: `WebSearch`, `web_search`."""
    return set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))


def _has_matching_word(words: set[str], pattern: re.Pattern[str]) -> bool:
    return any(pattern.fullmatch(word) for word in words)


def _build_calls(
    requests: list[CallRequest], tool_set: ToolSet, conversation: _Conversation, hints: ArgumentHints, dialect: Dialect
) -> list[Call]:
    """Return the calls with complete arguments.

    Identical calls are dropped unless the prompt requests them. Kimi's numbered ids continue those of the conversation.
    """
    ids = CallIdAllocator(conversation.ids, f"{hints.model}/{len(conversation.ids)}")
    ids.style = dialect.ids
    uses_numbered_ids = any("{n}" in str(header) for header in getattr(dialect.shape, "header", ()))
    calls: list[Call] = []
    for nth, request in enumerate(requests):
        tool = tool_set.get(request.tool)
        tool_hints = replace(hints, nth=nth, careful=_has_matching_word(_name_words(request.tool), _SIDE_EFFECT_WORD))
        args = write_json(fake_arguments(tool.schema if tool else {}, tool_hints, request.args))
        number = len(conversation.ids) + len(calls)
        if (
            not request.args
            and not request.is_explicit
            and any((call.name, call.arguments) == (request.tool, args) for call in calls)
        ):
            continue
        native_id = f"functions.{request.tool}:{number}" if uses_numbered_ids else None
        calls.append(Call(ids.allocate(native_id, number), request.tool, args))
    return calls


# ── summary of the conversation ───────────────────────────────────────────────────────────────────────────────────


def _find_summary_request(body: Mapping[str, Any], messages: list[Mapping[str, Any]]) -> int | None:
    """Return the index of the message that asks for a summary of a conversation with calls, and for no call.

    Agents may add notes of their own behind it.
    """
    if not any(_is_tool_turn(messages, n) for n in range(len(messages))):
        return None
    forbids_calls = not body.get("tools") or _tool_choice(body)[0] == "none"
    for index in range(len(messages) - 1, -1, -1):
        if _role(messages[index]) == "assistant":
            break
        text = "\n".join(map(user_text, _texts(messages[index]))) if _role(messages[index]) == "user" else ""
        if _SUMMARY_REQUEST.search(text) and (forbids_calls or _NO_TOOLS_REQUEST.search(text)):
            return index
    return None


def _write_summary(messages: list[Mapping[str, Any]], tool_set: ToolSet) -> str:
    """Return a summary that names the steps of the prompt that remain, in the prompt language."""
    tool_set = tool_set if tool_set.names else _called_tools(messages)
    conversation = _read_conversation(messages, tool_set)
    steps = parse_steps(conversation.prompt, tool_set)[conversation.turns :]
    remaining = ", then ".join(" and ".join(f"{call.tool} {write_json(call.args)}" for call in step) for step in steps)
    task = f"What remains of the task: Use {remaining}" if remaining else "The task is done."
    return f"<summary>\n{conversation.turns} steps are done. {task}\n</summary>"


def _called_tools(messages: list[Mapping[str, Any]]) -> ToolSet:
    """Return the tools that were called, for a request that offers none. Their params are those of the calls."""
    params: dict[str, dict[str, Any]] = {}
    for message in messages:
        for call in as_list(message.get("tool_calls")):
            function = as_mapping(as_mapping(call).get("function"))
            arguments = read_json(str(function.get("arguments")), dict[str, Any]) or {}
            params.setdefault(str(function.get("name")), {}).update({key: {} for key in arguments})
    return ToolSet([Tool(name, {"type": "object", "properties": fields}) for name, fields in params.items()])


# ── reply text ────────────────────────────────────────────────────────────────────────────────────────────────────


def _reply_text(body: Mapping[str, Any], conversation: _Conversation, hints: ArgumentHints, dialect: Dialect) -> str:
    """Return the text of a reply without calls."""
    format = as_mapping(body.get("response_format"))
    if format.get("type") == "json_schema":
        return write_json(fake_arguments(as_mapping(format.get("json_schema")).get("schema"), hints))
    if format.get("type") == "json_object":
        return write_json({"answer": f"hello from {hints.model}"})
    if conversation.results:
        return f"Done. {' '.join(_quote(result, dialect) for result in conversation.results)}"
    if not body.get("tools") and re.search(
        r"\btitle\b", conversation.system_prompt + conversation.prompt[:MAX_QUOTE_CHARS]
    ):
        return f"Chat with {hints.model}"
    introduction = f"I am {hints.model}, a script that writes like these models: {_models_of(dialect)}."
    instructions = "To make me call a tool, offer it, and write its name and key=value."
    return (
        f"You said: {_quote(conversation.prompt, dialect)} {introduction} {instructions}"
        if conversation.prompt
        else f"{introduction} {instructions}"
    )


def _models_of(dialect: Dialect) -> str:
    """Return the models of the dialect from its summary. The rest may contain markers, which clients would parse."""
    return dialect.summary.partition(":")[0]


def _quote(text: str, dialect: Dialect) -> str:
    """Quote the beginning of a text without the markers of this dialect."""
    excerpt = " ".join(compile_markers(*dialect.markers).remove_from(text[: 4 * MAX_QUOTE_CHARS]).split())
    return f"“{excerpt if len(excerpt) <= MAX_QUOTE_CHARS else excerpt[:MAX_QUOTE_CHARS] + '…'}”"


def _should_think(body: Mapping[str, Any], dialect: Dialect) -> bool:
    """Return whether the dialect has thinking and the request does not disable it."""
    template = as_mapping(body.get("chat_template_kwargs"))
    is_disabled = (
        body.get("reasoning_effort") == "none"
        or as_mapping(body.get("thinking")).get("type") == "disabled"
        or as_mapping(body.get("reasoning")).get("enabled") is False
        or as_mapping(body.get("reasoning")).get("effort") == "none"
        or False in (body.get("enable_thinking"), template.get("enable_thinking"), template.get("thinking"))
    )
    return not is_disabled and bool(dialect.thinking or dialect.router or dialect.grammar is None)


# ── request ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_tools(body: Mapping[str, Any]) -> ToolSet:
    """Return the tools of the request; malformed ones are left out."""
    tools: list[Tool] = []
    for tool in as_list(body.get("tools")):
        try:
            tools += Tool.read_all(tool)
        except BadInput:
            continue
    return ToolSet(tools)


def _tool_choice(body: Mapping[str, Any]) -> tuple[str, set[str]]:
    """Return the mode of `tool_choice` (auto, required, none) and the allowed tools; an empty set allows all."""
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        return choice, set()
    choice = as_mapping(choice)
    allowed = as_mapping(choice.get("allowed_tools"))
    if allowed:
        return str(allowed.get("mode")), {_tool_name(tool) for tool in as_list(allowed.get("tools"))}
    name = _tool_name(choice)
    return ("required", {name}) if name else ("auto", set())


def _tool_name(tool: object) -> str:
    tool = as_mapping(tool)
    inner = as_mapping(tool.get("function") or tool.get("custom") or tool)
    return str(inner.get("name") or "")


def _read_conversation(messages: list[Mapping[str, Any]], tool_set: ToolSet) -> _Conversation:
    """Return the state of the conversation.

    The prompt is the last user message since the last final answer that requests calls; if there is none, the last user
    message.
    """
    start = 1 + max((n for n in range(len(messages) - 1) if _is_final_answer(messages, n)), default=-1)
    user_indices = [n for n in range(start, len(messages)) if _role(messages[n]) == "user"]
    prompts = [(n, words) for n in user_indices if (words := list(filter(None, map(user_text, _texts(messages[n])))))]
    prompts_with_calls = [
        (n, texts_with_calls)
        for n, words in prompts
        if (texts_with_calls := [text for text in words if parse_steps(text, tool_set)])
    ]
    prompt_index, prompt = (prompts_with_calls or prompts or [(start, [])])[-1]
    turns = [n for n in range(start, len(messages)) if _is_tool_turn(messages, n)]
    trailing = list(takewhile(lambda message: _role(message) != "assistant", reversed(messages))) if turns else []
    return _Conversation(
        "\n".join(prompt),
        sum(n > prompt_index for n in turns) if prompts_with_calls else len(turns),
        tuple(_text(message) for message in reversed(trailing) if _role(message) == "tool")[:4],
        tuple(str(as_mapping(call).get("id")) for message in messages for call in as_list(message.get("tool_calls"))),
        sum(_is_tool_turn(messages, n) for n in range(len(messages))) >= MAX_TOOL_TURNS,
        " ".join(_text(message)[:1000] for message in messages if _role(message) == "system"),
    )


def _role(message: Mapping[str, Any]) -> str:
    """Return the role of the message. Some clients send tool results in a user message that starts with
    `Observation:`."""
    role = "system" if message.get("role") == "developer" else str(message.get("role"))
    return "tool" if role == "user" and _text(message).startswith("Observation:") else role


def _is_tool_turn(messages: list[Mapping[str, Any]], index: int) -> bool:
    """Return whether this message is an assistant turn with tool calls."""
    has_result = index + 1 < len(messages) and _role(messages[index + 1]) == "tool"
    return _role(messages[index]) == "assistant" and (bool(messages[index].get("tool_calls")) or has_result)


def _is_final_answer(messages: list[Mapping[str, Any]], index: int) -> bool:
    """Return whether this message is the final answer of an assistant turn."""
    is_continued = index + 1 < len(messages) and _role(messages[index + 1]) == "assistant"
    return _role(messages[index]) == "assistant" and not _is_tool_turn(messages, index) and not is_continued


def _texts(message: Mapping[str, Any]) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [str(as_mapping(part).get("text") or "") for part in as_list(content)]


def _text(message: Mapping[str, Any]) -> str:
    return "\n".join(_texts(message))
