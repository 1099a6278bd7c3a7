"""Tag proposal: the structural tag of a drafted dialect, checked with what the chat template renders."""

from __future__ import annotations

from typing import Any, NamedTuple

import interlingua as il
from interlingua.cli.dialects.drafting.dialect_guesser import DialectGuess
from interlingua.cli.dialects.drafting.template_probe import TOOLS
from interlingua.errors import InterlinguaError
from interlingua.exports.formats.structural_tag_reader import read_structural_tag
from interlingua.exports.matcher import Matcher

__all__ = ["TagProposal", "propose_tag"]


class TagProposal(NamedTuple):
    """The structural tag for the tools of the probe, or the reason why there is none."""

    tag: Any = None
    problem: str = ""


def propose_tag(dialect: il.Dialect, guess: DialectGuess) -> TagProposal:
    """Return the structural tag of a dialect, if it accepts the renderings of the template.

    The tag for optional calls must accept the whole turn and a turn without calls, and the one for required calls the
    calls.
    """
    renderings = (
        ("auto", "the assistant turn", guess.reply),
        ("auto", "a turn without calls", guess.plain_reply),
        ("required", "the calls", guess.calls),
    )
    try:
        tags = {choice: il.export("structural-tag", dialect, TOOLS, choice).content for choice in ("auto", "required")}
    except InterlinguaError as error:
        return TagProposal(problem=f"no structural tag: {error}")
    for choice, name, text in renderings:
        if not Matcher(read_structural_tag(tags[choice])).accepts(text):
            return TagProposal(
                problem=f"the structural tag for tool_choice {choice!r} does not accept {name}: {text!r}"
            )
    return TagProposal(tags["auto"])
