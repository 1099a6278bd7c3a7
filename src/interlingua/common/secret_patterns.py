r"""Secrets that are found by pattern: headers, assignments to names such as `api_key`, tokens of known formats, and
private keys.

Agents write code, and code names keys everywhere. A name or an expression is no secret: if `api_key=api_key` or
`f"Bearer {token}"` were replaced, a recording would contain broken code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

__all__ = ["find_secret_spans"]

_MAX_SHORT_BYTES = 1000
"""Below this size one search for any anchor is faster than one search per anchor."""


class _Pattern(NamedTuple):
    anchors: list[str]
    """Texts at which `regex` is matched, in lower case. They are found in any case."""
    regex: str
    """A verbose regular expression. Its group is the secret. A match without a group is skipped as a whole."""


_KEY = r"[\w.~+/=:-]"
_QUOTE = r"""(?: \\* ["'] )"""  # also inside a JSON string
_SCHEME = r"(?i: apikey | basic | bearer | digest | negotiate | token ) \b"
_ASSIGNMENT = rf"{_QUOTE}? [ \t]* [:=] [ \t]*+ (?! {_QUOTE}? \*\*\* )"  # in a header, in JSON, in code
_WITH_DIGIT = r"(?= [A-Za-z_.~+/=:-]*+ \d )"
_KEY_BUT_NO_NAME = rf"""(?:
    {_QUOTE} ({_KEY}{{4,}}+)
    | {_WITH_DIGIT} ({_KEY}{{6,}}+)
    | {_KEY}++  # a value without quotes and digits is a name, as in `api_key=api_key`
)"""
_WORDS_BEHIND_BEARER = r"""(?i: assertion | auth(?:entication|orization)? | certificate | challenge | credential
    | exchange | format | grant | header | middleware | request | scheme | security | token ) s? \b (?! [-_=+/.] \w )"""
_COOKIE_NAME = r"""[^\s=;,"'\\()\[\]{}]++"""
_LINE_BREAK = r"(?: \s | \\+[nrt] | \d+ (?: \s | \\+t | : | \xe2\x86\x92 | \\+u2192 ) )*+"  # with the number of a line

_ESCAPE_BEFORE = r"(?<= \\[nrt] ) | (?<= \\u[0-9A-Fa-f]{4} )"
"""Behind the letters of an escape sequence in a JSON string, a word begins."""

_WORD_START = rf"(?: (?<! [\w-] ) | {_ESCAPE_BEFORE} )"

_PATTERNS = [
    _Pattern(
        ["authorization"],
        rf"""(?i:authorization) {_ASSIGNMENT} (?:
            {_QUOTE}? ({_SCHEME} [ ]+ {_KEY}{{4,}}+ | [A-Za-z-]+ [ ]+ {_WITH_DIGIT} {_KEY}{{6,}}+)
            | {_QUOTE}? {_SCHEME}  # code, such as "Bearer " + token
            | {_KEY_BUT_NO_NAME}
        )""",
    ),
    _Pattern(["bearer"], rf"(?i:bearer) [ \t]+ (?: (?! {_WORDS_BEHIND_BEARER} ) ({_KEY}{{6,}}+) | {_KEY}++ )"),
    _Pattern(
        ["api-key", "api_key", "apikey", "client_secret", "clientsecret"],
        rf"(?i: api[-_]?key | client_?secret ) {_ASSIGNMENT} {_KEY_BUT_NO_NAME}",
    ),
    _Pattern(
        ["secret_access_key", "secretaccesskey", "session_token", "sessiontoken", "accountkey", "sharedaccesskey"],
        rf"""[A-Za-z_]+ {_ASSIGNMENT} {_QUOTE}? (?:
            (?= [A-Za-z+/=]*+ \d ) ([A-Za-z0-9+/=]{{40,}}+)  # of AWS and Azure
            | [A-Za-z0-9+/=]++
        )""",
    ),
    _Pattern(
        ["cookie"],
        rf"""(?i:cookie) {_ASSIGNMENT} {_QUOTE}? (?: ({_COOKIE_NAME} = [^\r\n"'\\]+) | {_COOKIE_NAME} )""",
    ),
    _Pattern(
        ["key=", "token=", "sig=", "signature="],  # in the query of a URL
        r"""(?: (?<=[?&]) | (?<=[?&]api) | (?<=[?&]api[-_]) | (?<=[?&]access_) )
        [a-zA-Z]+ = (?! [{$] ) ([^&\s"'\\#<>*]+)""",  # {…} and ${…} are names in a template
    ),
    _Pattern(["://"], r""":// (?! git@ ) ([^/\s"'\\@<>?#*]+) @"""),
    _Pattern(
        ["eyj"], rf"(?: \b | {_ESCAPE_BEFORE} ) (?: (eyJ[\w-]{{8,}}+ \. [\w-]{{8,}}+ \. [\w-]*+) | eyJ[\w-]*+ )"
    ),  # JSON web token
    _Pattern(
        ["-----begin "],
        rf"""-----BEGIN [ ] (?: [A-Z0-9]+ [ ] ){{0,4}} PRIVATE [ ] KEY (?: [ ] BLOCK )? -----
        (?= (?: [^"-] | -(?!----) )*? [A-Za-z0-9+/]{{24}} )  # not code that only mentions the line
        (?:
            ( [^"-]*+ (?: -(?!----) [^"-]*+ )*+ ) (?= -----END )
            | ( (?: {_LINE_BREAK} [A-Za-z0-9+/=]{{32,}}+ )++ )  # its end is cut off
        )""",
    ),
]
_TOKEN_FORMATS = [
    # They match only at the start of a word.
    _Pattern(
        ["sk-"],
        r"(?: (?= sk- (?! ssh- | ecdsa- ) (?: [a-z_-]*+ [A-Z0-9] | [a-z]{16} ) ) (sk-[\w-]{8,}+) | sk-[\w-]*+ )",
    ),
    _Pattern(["sk_", "rk_"], r"([rs]k_ (?: live_ | test_ )? [A-Za-z0-9]{16,}+)"),
    _Pattern(["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"(gh[oprsu]_[A-Za-z0-9]{20,}+)"),
    _Pattern(["github_pat_"], r"(github_pat_\w{20,}+)"),
    _Pattern(["glpat-"], r"(glpat-[\w-]{20,}+ (?: \.[\w-]++ )*)"),
    _Pattern(["xox", "xapp-"], r"(?= x[a-z]+- [A-Za-z_-]*+ \d ) ((?: xox[a-z] | xapp )-[\w-]{10,}+)"),
    _Pattern(["hooks.slack.com/services/"], r"hooks\.slack\.com/services/([\w/]{20,}+)"),
    _Pattern(["akia", "asia"], r"(A[KS]IA[A-Z0-9]{16}+) (?!\w)"),
    _Pattern(["aiza"], r"(AIza[\w-]{30,}+)"),
    _Pattern(["ya29."], r"(ya29\.[\w-]{20,}+)"),
    _Pattern(["gocspx-"], r"(GOCSPX-[\w-]{20,}+)"),
    _Pattern(["nvapi-"], r"(nvapi-[\w-]{20,}+)"),
    _Pattern(["pypi-ageichlwas5vcmc"], r"(pypi-[\w-]{50,}+)"),
    _Pattern(["dckr_pat_"], r"(dckr_pat_[\w-]{20,}+)"),
    _Pattern(["age-secret-key-1"], r"(AGE-SECRET-KEY-1[A-Z0-9]{50,}+)"),
    _Pattern(["tvly-"], r"(tvly- (?: dev- | prod- )? [A-Za-z0-9]{16,}+)"),
    *(
        _Pattern([prefix], rf"({prefix}[A-Za-z0-9]{{16,}}+)")
        for prefix in ("csk-", "fw_", "gsk_", "hf_", "npm_", "pplx-", "r8_", "xai-")
    ),
]


def _compile(pattern: _Pattern, prefix: str = "") -> list[tuple[bytes, re.Pattern[bytes]]]:
    regex = re.compile((prefix + pattern.regex).encode("ascii"), re.VERBOSE)
    return [(anchor.encode("ascii"), regex) for anchor in pattern.anchors]


_ANCHORED_REGEXES = [
    *(anchored for pattern in _PATTERNS for anchored in _compile(pattern)),
    *(anchored for pattern in _TOKEN_FORMATS for anchored in _compile(pattern, _WORD_START)),
]


def _any_of(texts: Iterable[bytes]) -> re.Pattern[bytes]:
    """Return a regular expression for any of these texts. Texts are grouped by their first byte: this is faster."""
    groups = groupby(sorted(texts), key=lambda text: text[:1])
    return re.compile(
        b"|".join(
            re.escape(first) + b"(?:" + b"|".join(re.escape(text[1:]) for text in group) + b")"
            for first, group in groups
        )
    )


_ANY_ANCHOR = _any_of(anchor for anchor, _ in _ANCHORED_REGEXES)


def find_secret_spans(data: bytes) -> list[tuple[int, int]]:
    """Return the spans of secrets, in order. They may overlap.

    Anchors are found by plain text search, so that long bodies do not delay other requests. Of the anchors inside a
    match only the last one is tried: all of them end at the same place, and `cookie:cookie:…` would take quadratic
    time.
    """
    lower = data.lower()
    if len(data) < _MAX_SHORT_BYTES and not _ANY_ANCHOR.search(lower):
        return []
    spans = []
    for anchor, regex in _ANCHORED_REGEXES:
        position = lower.find(anchor)
        while position >= 0:
            anchor_end = position + len(anchor)
            match = regex.match(data, position)
            if match is None:
                position = lower.find(anchor, anchor_end)
                continue
            if match.lastindex is not None:
                spans.append(match.span(match.lastindex))
            nested_position = lower.rfind(anchor, anchor_end, match.end())
            position = nested_position if nested_position >= 0 else lower.find(anchor, match.end())
    return sorted(spans)
