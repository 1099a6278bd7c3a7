"""Rules for comparing requests: what counts, and what is left out because it changes from run to run.

What never counts: ids of calls and items, cache marks, the user and the metadata of a request, prompt cache keys, past
thinking with its signatures, whether a stream is requested, and the order of the tools.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy

from interlingua.common.redaction import Redactor
from interlingua.errors import UsageError
from interlingua.upstreams.adapt.messages import BILLING_LINE_PATTERN

__all__ = ["DEFAULT_RULES", "MatchRules"]

UNCOUNTED_FIELDS = frozenset(
    {
        "background",
        "client_metadata",
        "include",
        "include_obfuscation",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "stream_options",
    }
)
"""Fields of request bodies that do not change what the model is asked."""
PART_NAMES = frozenset(
    {
        "model",
        "system",
        "tools",
        "tool_descriptions",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "max_tokens",
        "n",
        "stop",
        "thinking",
        "effort",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "seed",
        "frequency_penalty",
        "presence_penalty",
        "repetition_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "verbosity",
    }
)
"""Names of the parts and settings of requests. All other names are those of fields."""
_CONTEXT_BLOCK = re.compile(r"<(system-reminder|env|environment_context)>.*?</\1>", re.DOTALL)
"""Text that agents add to a user's message about their environment. It states the date, as system prompts do."""
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DATE = (
    r"(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? )?"
    rf"(?:\d{{4}}-\d\d-\d\d|\d{{1,2}}/\d{{1,2}}/\d{{4}}|{_MONTH} \d{{1,2}},? \d{{4}}|\d{{1,2}} {_MONTH} \d{{4}})"
    r"(?:[T ,]+(?:at )?\d\d?:\d\d(?::\d\d)?(?:\.\d+)?(?: ?[AP]M)?(?:Z| ?UTC|[+-]\d\d:?\d\d)?)?"
)
_STATED_DATE = re.compile(rf"(?i)((?:\b(?:today|now|date|time)\b|_date\b|_time\b)[^\n]{{0,40}}?)\b{_DATE}")
"""A date that a line introduces as the current one."""
DATE = "<date>"
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character, which a file cannot contain."""
_SHELL_HEADER = re.compile(r"\A(?:Chunk ID: [0-9a-f]+\n)?Wall time: [\d.]+ seconds\n")
"""First lines of the results of the shell tools of Codex and Kimi Code."""


class MatchRules:
    """Rules for comparing requests.

    Args:
        ignore: What does not count: `model`, `system`, `tools`, `tool_descriptions`, `tool_choice`, `max_tokens`,
            `temperature` and other settings, or the name of any other field of the request.
        replace: Regular expressions and their replacements, for every text of a request: paths, ids, times.
        defaults: Whether to leave out what agents change from run to run: stated dates, Claude Code's billing line,
            the wall time in results of the shell tools of Codex and Kimi Code, and `UNCOUNTED_FIELDS`.
    """

    def __init__(
        self,
        ignore: tuple[str, ...] | list[str] = (),
        replace: Mapping[str, str] | None = None,
        *,
        defaults: bool = True,
    ) -> None:
        self.redactor = Redactor()
        """Finds secrets, which do not count."""
        self.ignore = frozenset(ignore)
        self._used: set[str] = set()
        """Names in `ignore` that a request had. The copies of `with_redactor` add to the same set."""
        self.defaults = defaults
        try:
            self._replacements = [(re.compile(pattern), text) for pattern, text in (replace or {}).items()]
            for pattern, text in self._replacements:
                pattern.sub(text, "")
        except re.error as error:
            raise UsageError(f"not a regular expression: {error.pattern!r}: {error}", "see the `re` module") from None

    def with_redactor(self, redactor: Redactor) -> MatchRules:
        """Return the same rules for a client whose secrets are known."""
        rules = copy(self)
        rules.redactor = redactor
        return rules

    def counts(self, name: str) -> bool:
        """Return whether a part, setting or field of a request counts."""
        if name in self.ignore:
            self._used.add(name)
            return False
        return not (self.defaults and name in UNCOUNTED_FIELDS)

    def describe_unused(self) -> str:
        """Return which names in `ignore` no request had that was read so far; "" if there are none.

        Parts and settings are not named: rules are shared by programs, and not all of them set a temperature.
        """
        unused = ", ".join(map(repr, sorted(self.ignore - self._used - PART_NAMES)))
        return f"`ignore` has no effect for {unused}: no request has a field of this name that counts" if unused else ""

    def clean(self, text: str) -> str:
        """Return a text without secrets and without what the user's rules replace."""
        text = self.redactor.redact_text(_SURROGATE.sub("\ufffd", text))
        for pattern, replacement in self._replacements:
            text = pattern.sub(replacement, text)
        return text

    def clean_system(self, text: str) -> str:
        """Return the text of a system message without what changes from run to run."""
        if self.defaults:
            billing_line = BILLING_LINE_PATTERN.match(text)
            text = _STATED_DATE.sub(rf"\g<1>{DATE}", text[billing_line.end() :] if billing_line else text)
        return self.clean(text)

    def clean_user(self, text: str) -> str:
        """Return the text of a user's message without what changes in the context that an agent has added to it."""
        if self.defaults and "</" in text:
            text = _CONTEXT_BLOCK.sub(lambda block: _STATED_DATE.sub(rf"\g<1>{DATE}", block[0]), text)
        return self.clean(text)

    def clean_result(self, text: str) -> str:
        """Return the text of a tool result without what changes from run to run."""
        return self.clean(_SHELL_HEADER.sub("", text) if self.defaults else text)


DEFAULT_RULES = MatchRules()
