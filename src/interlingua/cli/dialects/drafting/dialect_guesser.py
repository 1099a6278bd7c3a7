"""Dialect guesser: derive markers from the text around the known reasoning, text and calls of the probe."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import interlingua as il
from interlingua.cli.dialects.drafting.shape_guesser import guess_shape
from interlingua.cli.dialects.drafting.template_probe import CONTENT, THINKING, ProbeResult
from interlingua.cli.dialects.drafting.template_tokens import closer_length, common_token_count, tokenize
from interlingua.common.common_prefix import common_prefix_length
from interlingua.parsing.dialect import Shape

__all__ = ["DialectGuess", "guess_dialect"]

TEXT_NOTE = "These markers are around the text. Their purpose was not examined."
_SPECIAL_TOKEN = re.compile(r"<\||\|>|｜|\[[A-Z_]+\]")


@dataclass
class DialectGuess:
    """Result of the guess. Notes describe uncertain fields, by field path."""

    reply: str = ""
    """The assistant turn without the generation prompt before it and the end-of-turn tokens after it."""
    prefill: str = ""
    """Beginning of the reply that the generation prompt contains."""
    plain_reply: str = CONTENT
    """A reply without calls."""
    calls: str = ""
    lead: str = ""
    noise: tuple[str, ...] = ()
    thinking: tuple[il.Span, ...] = ()
    text: tuple[il.Span, ...] = ()
    shape: Shape | None = None
    notes: dict[str, str] = field(default_factory=dict)

    def add_note(self, path: str, text: str) -> None:
        self.notes[path] = f"{self.notes[path]} {text}" if path in self.notes else f"DRAFT: {text}"

    def build_dialect(self, name: str) -> il.Dialect:
        spans = (*self.thinking, *self.text)
        whitespace = {char for span in spans for char in span.inside + span.after} | set(self.lead)
        openers = self.shape.grammar(()).openers if self.shape else ()
        all_special = all(_SPECIAL_TOKEN.search(opener) for opener in openers)
        if not all_special:
            self.add_note("special_tokens", "Remove this line if each marker is one token of the model's vocabulary.")
        return il.Dialect(
            name=name,
            summary=f"{name}: drafted",
            models=(f"*{name.replace('_', '-').lower()}*",),
            shape=self.shape,
            thinking=self.thinking,
            text=self.text,
            noise=self.noise,
            special_tokens=all_special,
            trim="".join(sorted(whitespace)),
            lead=self.lead,
            sample=self.reply,
        )


def guess_dialect(probe_result: ProbeResult) -> DialectGuess:
    guess = DialectGuess()
    thinking_end = _find_thinking(probe_result, guess)
    text_end = _find_text(probe_result, guess, thinking_end)
    _find_end(probe_result, guess, text_end)
    end = text_end + len(guess.lead) + len(guess.calls)
    guess.reply = probe_result.turn[_reply_start(probe_result, guess) : end].lstrip()
    guess.shape, notes = guess_shape(guess.calls, probe_result.calls)
    if getattr(guess.shape, "bare", False):  # a bare call is recognized only at the beginning of the text
        guess.reply = guess.reply.removesuffix(guess.calls).partition(CONTENT)[0] + guess.calls
    guess.plain_reply = _plain_reply(probe_result, guess)
    for path, text in notes:
        guess.add_note(path, text)
    guess.add_note("models", "Derived from the file name. Replace it by the ids of the models.")
    return guess


def _find_thinking(probe_result: ProbeResult, guess: DialectGuess) -> int:
    """Find the reasoning markers. Return the end of the reasoning, or the start of the reply if there is none."""
    turn, thinking_start = probe_result.turn, probe_result.turn.find(THINKING)
    start, end = common_prefix_length(probe_result.generation_prompt, turn), thinking_start + len(THINKING)
    before_tokens = tokenize(turn[: max(thinking_start, 0)])
    after_tokens = tokenize(turn[end : max(turn.find(CONTENT, end), 0) or len(turn)])
    if thinking_start < 0 or not before_tokens or not after_tokens:
        if "<think>" in probe_result.generation_prompt:
            guess.thinking = (il.Span("<think>", "</think>"),)
        guess.add_note(
            "sample", "The template renders no reasoning together with calls. If the model reasons, check `thinking`."
        )
        return start
    if (
        not probe_result.generation_prompt or not turn[start:thinking_start].strip()
    ):  # the prompt contains the opening marker
        start = max((token.start for token in before_tokens if token.is_tag), default=before_tokens[-1].start)
    last_close_token = after_tokens[closer_length(after_tokens) - 1] if after_tokens[0].is_tag else after_tokens[-1]
    open, close = turn[start:thinking_start].strip(), turn[end + after_tokens[0].start : end + last_close_token.end]
    leading, trailing, remainder = (
        turn[start:thinking_start],
        turn[end : end + after_tokens[0].start],
        turn[end + last_close_token.end :],
    )
    inside, whitespace = leading[len(leading.rstrip()) :], remainder[: len(remainder) - len(remainder.lstrip())]
    if inside and not trailing:
        open, inside = open + inside, ""
    guess.thinking = (il.Span(open, close, inside=inside if inside == trailing else "", after=whitespace),)
    return end + last_close_token.end + len(whitespace)


def _find_text(probe_result: ProbeResult, guess: DialectGuess, start: int) -> int:
    """Find the markers around the text, if there is one before it. Return the end of the text and its marker."""
    turn, content_start = probe_result.turn, probe_result.turn.find(CONTENT, start)
    if content_start < 0:
        guess.add_note("sample", "The template renders no text together with calls. The model may write some.")
        _find_text_without_calls(probe_result, guess)
        return start
    end = content_start + len(CONTENT)
    open, after_tokens = turn[start:content_start].strip(), tokenize(turn[end:])
    if not open or not after_tokens or not (guess.thinking or probe_result.generation_prompt):
        return end
    last_close_token = after_tokens[closer_length(after_tokens) - 1]
    guess.text = (il.Span(open, turn[end + after_tokens[0].start : end + last_close_token.end]),)
    guess.add_note("text", TEXT_NOTE)
    return end + last_close_token.end


def _find_text_without_calls(probe_result: ProbeResult, guess: DialectGuess) -> None:
    """Find the markers around the text of a turn without calls."""
    prompt, turn = probe_result.generation_prompt, probe_result.plain_turn
    open, _, after = turn[common_prefix_length(prompt, turn) :].partition(CONTENT)
    for marker in (marker for span in guess.thinking for marker in (span.open, span.close)):
        open = open.replace(marker, "")
    after_tokens = tokenize(after)
    ending_length = common_token_count(after_tokens[::-1], tokenize(probe_result.turn)[::-1])
    close_tokens = after_tokens[: len(after_tokens) - ending_length]
    if prompt and open.strip() and close_tokens and all(token.is_tag for token in tokenize(open)):
        guess.text = (il.Span(open.strip(), after[close_tokens[0].start : close_tokens[-1].end]),)
        guess.add_note("text", TEXT_NOTE)


def _find_end(probe_result: ProbeResult, guess: DialectGuess, text_end: int) -> None:
    """Find the end-of-turn tokens: those at the end of a turn without calls."""
    remainder = probe_result.turn[text_end:]
    _, content, ending = probe_result.plain_turn.partition(CONTENT)
    for span in guess.text:
        ending = ending.lstrip().removeprefix(span.close)
    if not content or not remainder.endswith(ending):
        ending = ""
        guess.add_note(
            "sample",
            "The end-of-turn tokens were not found. Move everything here that is not part of the calls to `noise`.",
        )
    guess.noise = tuple(token.text for token in tokenize(ending))
    if probe_result.placeholder in guess.noise:
        text = f"{probe_result.placeholder} is a placeholder: replace it by the eos_token of tokenizer_config.json."
        guess.add_note("noise", text)
    calls = remainder.removesuffix(ending).rstrip()
    guess.calls = calls.lstrip()
    guess.lead = calls[: len(calls) - len(guess.calls)]


def _reply_start(probe_result: ProbeResult, guess: DialectGuess) -> int:
    """Return where the reply begins: after the generation prompt, except for its marker that opens the reasoning."""
    prompt_length = common_prefix_length(probe_result.generation_prompt, probe_result.turn)
    thinking_start = probe_result.generation_prompt.find(guess.thinking[0].open) if guess.thinking else -1
    if thinking_start < 0:
        return prompt_length
    guess.prefill = probe_result.generation_prompt[thinking_start:]
    guess.add_note("thinking", f"The prompt ends with {guess.prefill!r}: pass that as `prefill`.")
    return min(prompt_length, thinking_start)


def _plain_reply(probe_result: ProbeResult, guess: DialectGuess) -> str:
    """Return the turn without calls, without the generation prompt before it and the end-of-turn tokens after it."""
    prompt = probe_result.generation_prompt.removesuffix(guess.prefill)
    if not prompt or not probe_result.plain_turn.startswith(prompt):
        return CONTENT
    reply = probe_result.plain_turn.removeprefix(prompt)
    for token in reversed(guess.noise):
        reply = reply.rstrip().removesuffix(token)
    return reply.strip()
