"""Decoder: replies of a tiny model with random weights, by transformers, constrained by xgrammar or not."""

import json
from importlib.metadata import version
from typing import Any

import torch
import xgrammar as xgr
from answers import answer_requests
from byte_model import END, VOCABULARY_SIZE, Habits, make_model
from transformers import LogitsProcessor, LogitsProcessorList

BATCH = 50


class Constraint(LogitsProcessor):
    """Sets the logits of all tokens that the grammar does not allow to minus infinity."""

    def __init__(self, compiled: xgr.CompiledGrammar, size: int) -> None:
        self._matchers = [xgr.GrammarMatcher(compiled) for _ in range(size)]
        self._bitmask = xgr.allocate_token_bitmask(size, VOCABULARY_SIZE)
        self._is_first = True

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        for row, matcher in enumerate(self._matchers):
            if not self._is_first and not matcher.is_terminated():
                assert matcher.accept_token(int(input_ids[row, -1]))
            if not matcher.is_terminated():
                matcher.fill_next_token_bitmask(self._bitmask, row)
        self._is_first = False
        xgr.apply_token_bitmask_inplace(scores, self._bitmask)
        return scores


class Decoder:
    def __init__(self) -> None:
        self._model = make_model()
        tokens = [bytes([byte]) for byte in range(256)] + [b"</s>"]
        self._tokenizer = xgr.TokenizerInfo(tokens, vocab_type=xgr.VocabType.RAW, stop_token_ids=[END])
        self._compiler = xgr.GrammarCompiler(self._tokenizer, max_threads=1)

    def sample(
        self, constraint: Any, markers: list[str], count: int, seed: int, max_tokens: int
    ) -> list[dict[str, Any]]:
        """Return replies: the text, and whether the model has ended it. The constraint is a structural tag, or None."""
        compiled = self._compiler.compile_structural_tag(json.dumps(constraint)) if constraint else None
        replies: list[dict[str, Any]] = []
        torch.manual_seed(seed)
        while len(replies) < count:
            size = min(BATCH, count - len(replies))
            prompt = torch.full((size, 1), END)
            processors = [Habits(markers, 1), *([Constraint(compiled, size)] if compiled else [])]
            output = self._model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                do_sample=True,
                max_new_tokens=max_tokens,
                logits_processor=LogitsProcessorList(processors),
                pad_token_id=END,
            )
            for row in output[:, 1:].tolist():
                text = bytes(token for token in row if token != END).decode(errors="replace")
                replies.append({"text": text, "ended": END in row})
        return replies


def builtin_tag(model: str, tools: list[Any], tool_choice: Any, reasoning: bool) -> Any:
    """Return xgrammar's own tag for a model."""
    return xgr.get_model_structural_tag(model, tools, tool_choice, reasoning).model_dump()


decoder = Decoder()
answer_requests(
    sample=decoder.sample,
    builtin_tag=builtin_tag,
    versions=lambda: {name: version(name) for name in ("torch", "transformers", "xgrammar")},
)
