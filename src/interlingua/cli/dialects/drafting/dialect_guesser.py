"""A dialect from a turn whose thinking, text and calls are known: what stands around them are its markers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import interlingua as il
from interlingua.cli.dialects.drafting.shape_guesser import shape_of
from interlingua.cli.dialects.drafting.template_probe import CONTENT, EOS, THINKING, Probed
from interlingua.cli.dialects.drafting.template_tokens import closer, common, tokens
from interlingua.parsing.dialect import Shape

__all__ = ["Guess", "guess"]

_SPECIAL = re.compile(r"<\||\|>|｜|\[[A-Z_]+\]")


@dataclass
class Guess:
    """What was found. A note says of a field, by its path, what is not certain."""

    reply: str = ""
    """The turn without what the prompt writes before it and what ends it."""
    prefill: str = ""
    """What the prompt writes of the reply."""
    calls: str = ""
    lead: str = ""
    noise: tuple[str, ...] = ()
    thinking: tuple[il.Span, ...] = ()
    text: tuple[il.Span, ...] = ()
    shape: Shape | None = None
    notes: dict[str, str] = field(default_factory=dict)

    def note(self, path: str, text: str) -> None:
        self.notes[path] = f"{self.notes[path]} {text}" if path in self.notes else f"DRAFT: {text}"

    def dialect(self, name: str) -> il.Dialect:
        spans = (*self.thinking, *self.text)
        space = {char for span in spans for char in span.inside + span.after} | set(self.lead)
        openers = self.shape.grammar(()).openers if self.shape else ()
        special = all(_SPECIAL.search(opener) for opener in openers)
        if not special:
            self.note("special_tokens", "Leave it out if each marker is one token of the model's vocabulary.")
        return il.Dialect(
            name=name,
            summary=f"{name}: drafted from its chat template",
            models=(f"*{name.replace('_', '-').lower()}*",),
            shape=self.shape,
            thinking=self.thinking,
            text=self.text,
            noise=self.noise,
            special_tokens=special,
            trim="".join(sorted(space)),
            lead=self.lead,
            sample=self.reply,
        )


def guess(probed: Probed) -> Guess:
    found = Guess()
    thought = _find_thinking(probed, found)
    said = _find_text(probed, found, thought)
    _find_end(probed, found, said)
    end = said + len(found.lead) + len(found.calls)
    found.reply = probed.turn[_reply_start(probed, found) : end].lstrip()
    found.shape, notes = shape_of(found.calls, probed.calls)
    if getattr(found.shape, "bare", False):  # such a call is one only where a text begins with it
        found.reply = found.reply.partition(CONTENT)[0] + found.calls
    for path, text in notes:
        found.note(path, text)
    found.note("models", "This is only the file's name.")
    return found


def _find_thinking(probed: Probed, found: Guess) -> int:
    """Where the thinking ends, with the white space after it. Without any, where the reply begins."""
    turn, at = probed.turn, probed.turn.find(THINKING)
    start, end = common(probed.opening, turn), at + len(THINKING)
    before = tokens(turn[: max(at, 0)])
    after = tokens(turn[end : max(turn.find(CONTENT, end), 0) or len(turn)])
    if at < 0 or not before or not after:
        if "<think>" in probed.opening:
            found.thinking = (il.Span("<think>", "</think>"),)
        found.note("sample", "The template writes no thinking beside calls. If the model thinks, see `thinking`.")
        return start
    if not probed.opening or not turn[start:at].strip():  # the prompt opens it
        start = max((token.start for token in before if token.is_tag), default=before[-1].start)
    last = after[closer(after) - 1] if after[0].is_tag else after[-1]
    open, close = turn[start:at].strip(), turn[end + after[0].start : end + last.end]
    left, right, rest = turn[start:at], turn[end : end + after[0].start], turn[end + last.end :]
    inside, space = left[len(left.rstrip()) :], rest[: len(rest) - len(rest.lstrip())]
    if inside and not right:
        open, inside = open + inside, ""
    found.thinking = (il.Span(open, close, inside=inside if inside == right else "", after=space),)
    return end + last.end + len(space)


def _find_text(probed: Probed, found: Guess, start: int) -> int:
    """Where the text ends, with the marker after it if one stands before it too."""
    turn, at = probed.turn, probed.turn.find(CONTENT, start)
    if at < 0:
        found.note("sample", "The template writes no text beside calls. The model may.")
        return start
    end = at + len(CONTENT)
    open, after = turn[start:at].strip(), tokens(turn[end:])
    if not open or not after or not (found.thinking or probed.opening):
        return end
    last = after[closer(after) - 1]
    found.text = (il.Span(open, turn[end + after[0].start : end + last.end]),)
    found.note("text", "These stand around the text; what they are there for was not looked at.")
    return end + last.end


def _find_end(probed: Probed, found: Guess, said: int) -> None:
    """What ends a turn is what a turn without calls ends with."""
    rest = probed.turn[said:]
    _, plain, ending = probed.plain.partition(CONTENT)
    for span in found.text:
        ending = ending.lstrip().removeprefix(span.close)
    if not plain or not rest.endswith(ending):
        ending = ""
        found.note("sample", "What ends a turn could not be told: what here is no part of the calls belongs to noise.")
    found.noise = tuple(token.text for token in tokens(ending))
    if EOS in found.noise and probed.writes_eos:
        found.note("noise", f"{EOS} stands for the eos_token that the model's tokenizer_config.json names.")
    calls = rest.removesuffix(ending).rstrip()
    found.calls = calls.lstrip()
    found.lead = calls[: len(calls) - len(found.calls)]


def _reply_start(probed: Probed, found: Guess) -> int:
    """Where the reply begins: after what the prompt writes, but for what opens the thinking."""
    shared = common(probed.opening, probed.turn)
    at = probed.opening.find(found.thinking[0].open) if found.thinking else -1
    if at < 0:
        return shared
    found.prefill = probed.opening[at:]
    found.note("thinking", f"The prompt ends in {found.prefill!r}: pass that as prefill.")
    return min(shared, at)
