"""Decoder: replies of a tiny model with random weights, by transformers, constrained by xgrammar or not.

The model has one token for each byte, and one for the end of the reply. It is made, not downloaded.
"""

import json
from importlib.metadata import version
from typing import Any

import torch
import xgrammar as xgr
from answers import answer_requests
from habits import END, Habits
from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessor, LogitsProcessorList

VOCABULARY_SIZE = END + 1
BATCH = 250
"""Replies that are sampled at the same time."""


def make_model(seed: int = 7) -> LlamaForCausalLM:
    """Return a Llama with two layers and random weights, always the same for a seed."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    config = LlamaConfig(
        vocab_size=VOCABULARY_SIZE,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=1024,
        bos_token_id=END,
        eos_token_id=END,
        pad_token_id=END,
    )
    return LlamaForCausalLM(config).eval()


class HabitsProcessor(LogitsProcessor):
    """Adds the habits to the logits."""

    def __init__(self, habits: Habits, size: int) -> None:
        self._bonus = torch.tensor(habits.bonus)
        self._impatience = torch.tensor(habits.impatience)
        self._next_state = torch.tensor(habits.next_state)
        self._states: torch.Tensor | None = None
        self._size = size

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if self._states is None:
            self._states = torch.zeros(self._size, dtype=torch.long)
        else:
            self._states = self._next_state[self._states, input_ids[:, -1]]
        return scores + self._bonus[self._states] + (input_ids.shape[1] - 1) * self._impatience[self._states]


class Constraint(LogitsProcessor):
    """Sets the logits of all tokens that the grammar does not allow to minus infinity."""

    def __init__(self, compiled: xgr.CompiledGrammar, size: int) -> None:
        self._matchers = [xgr.GrammarMatcher(compiled) for _ in range(size)]
        self._bitmask = xgr.allocate_token_bitmask(size, VOCABULARY_SIZE)
        self._is_first = True

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        for row, token in enumerate(input_ids[:, -1].tolist()):
            matcher = self._matchers[row]
            if not self._is_first and not matcher.is_terminated():
                assert matcher.accept_token(token)
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
        self, constraint: Any, markers: list[str], endings: list[str], count: int, seed: int, max_tokens: int
    ) -> list[dict[str, Any]]:
        """Return replies: the text, and whether the model has ended it. The constraint is a structural tag, or None."""
        compiled = self._compiler.compile_structural_tag(json.dumps(constraint)) if constraint else None
        habits = Habits(markers, endings, VOCABULARY_SIZE)
        replies: list[dict[str, Any]] = []
        torch.manual_seed(seed)
        while len(replies) < count:
            size = min(BATCH, count - len(replies))
            prompt = torch.full((size, 1), END)
            processors = [HabitsProcessor(habits, size), *([Constraint(compiled, size)] if compiled else [])]
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
