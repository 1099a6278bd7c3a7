"""Search for deferred tools by the words in their names and descriptions, ranked by BM25."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import log

from interlingua.common.schema.resolver import as_mapping
from interlingua.core.tools import Tool
from interlingua.gateway.server_tools.server_tool import INVALID_INPUT, Json, Outcome, ServerToolKind

__all__ = ["ToolSearch"]

DEFAULT_RESULTS, MAX_RESULTS = 5, 20
MAX_LISTED_NAMES = 40
"""Number of tool names that the description of the search lists, so that the model knows what there is to find."""
MAX_QUERY_WORDS = 50
NAME_WEIGHT = 3
"""A word in the name of a tool counts as often as this many in its description."""
K1, B = 1.2, 0.75
"""The usual constants of BM25: saturation of repeated words, and influence of the length."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")


class ToolSearch:
    """Search over the deferred tools of one request.

    Args:
        name: Name of the function for the model.
        tools: The tools that can be found.
        argument: Name of the argument with the words: `query`, or `pattern` of a search by regular expression. Of a
            pattern only the words are used: models write patterns that a backtracking engine may never finish.
    """

    kind: ServerToolKind = "tool_search"

    def __init__(self, name: str, tools: Sequence[Tool], argument: str = "query") -> None:
        self.name = name
        self._tools = tools
        self._argument = argument
        names = [tool.name for tool in tools[:MAX_LISTED_NAMES]]
        more = f" and {len(tools) - len(names)} more" if len(tools) > len(names) else ""
        self.description = (
            "Search for further tools. You can call a tool that was found from then on. "
            f"There are {len(tools)} tools to find: {', '.join(names)}{more}."
        )
        words = {"type": "string", "description": "Words for what the tool should do, or parts of its name."}
        limit = {"type": "integer", "description": f"Maximum number of tools; {DEFAULT_RESULTS} by default."}
        self.parameters: Json = {
            "type": "object",
            "properties": {argument: words, "limit": limit},
            "required": [argument],
        }

    async def run(self, arguments: Json) -> Outcome:
        query, limit = arguments.get(self._argument), arguments.get("limit")
        if not isinstance(query, str):
            return Outcome(error=INVALID_INPUT)
        count = min(max(limit, 1), MAX_RESULTS) if isinstance(limit, int) else DEFAULT_RESULTS
        return Outcome(found=rank_tools(query, self._tools)[:count])


def rank_tools(query: str, tools: Sequence[Tool]) -> list[Tool]:
    """Return the tools that have a word of the query, the best match first."""
    documents = [Counter(_tool_words(tool)) for tool in tools]
    lengths = [document.total() for document in documents]
    average = sum(lengths) / len(lengths) if lengths else 0.0
    scores = [0.0] * len(tools)
    for word in dict.fromkeys(_words(query)[:MAX_QUERY_WORDS]):
        frequency = sum(word in document for document in documents)
        rarity = log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
        for n, document in enumerate(documents):
            if count := document[word]:
                scores[n] += rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[n] / average))
    ranked = sorted(range(len(tools)), key=lambda n: -scores[n])
    return [tools[n] for n in ranked if scores[n] > 0]


def _tool_words(tool: Tool) -> Iterable[str]:
    yield from _words(tool.name) * NAME_WEIGHT
    yield from _words(f"{tool.description} {tool.about}")
    for name, schema in as_mapping(tool.schema.get("properties")).items():
        yield from _words(f"{name} {as_mapping(schema).get('description') or ''}")


def _words(text: str) -> list[str]:
    """Return the words of a text or of a name (`getUserData`, `get_user_data`), without plural endings."""
    words = (word.lower() for word in _WORD.findall(text))
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in words]
