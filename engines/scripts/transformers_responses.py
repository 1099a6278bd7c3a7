"""Replies through the transformers plugin: complete text, complete tokens, and streamed by `model.generate`.

The model is a tiny Llama with random weights. A logits processor makes it write the given reply.
"""

from functools import cache
from threading import Thread
from typing import Any

import torch
import transformers
from answers import answer_requests
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessor, LogitsProcessorList, PreTrainedTokenizerFast

from interlingua.integrations.transformers_parser import ResponseStreamer, parse_response

EOS = "<|end of the test|>"


@cache
def make_tokenizer() -> Any:
    """Return a tokenizer with one token per byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({char: number for number, char in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=EOS, clean_up_tokenization_spaces=False)


@cache
def make_model() -> Any:
    torch.manual_seed(0)
    size = len(make_tokenizer())
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=8192,
        eos_token_id=make_tokenizer().eos_token_id,
    )
    return LlamaForCausalLM(config).eval()


class Script(LogitsProcessor):  # type: ignore[misc]
    """Makes a model write these tokens, and then the end of the turn."""

    def __init__(self, prompt_length: int, tokens: list[int]) -> None:
        self.prompt_length, self.tokens = prompt_length, [*tokens, make_tokenizer().eos_token_id]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        position = input_ids.shape[1] - self.prompt_length
        forced = torch.full_like(scores, float("-inf"))
        forced[:, self.tokens[position]] = 0
        return forced


def read(*, dialect: str, text: str, tools: Any, prompt: str) -> dict[str, Any]:
    """Return the message of a text and of its tokens, and what is streamed."""
    tokenizer = make_tokenizer()
    prompt_tokens = tokenizer(prompt, return_tensors="pt")["input_ids"]
    tokens = tokenizer.encode(text, add_special_tokens=False)
    options: dict[str, Any] = {"tools": tools, "dialect": dialect}
    streamer = ResponseStreamer(tokenizer, **options, timeout=60)
    thread = Thread(
        target=make_model().generate,
        kwargs={
            "inputs": prompt_tokens,
            "max_new_tokens": len(tokens) + 1,
            "logits_processor": LogitsProcessorList([Script(prompt_tokens.shape[1], tokens)]),
            "pad_token_id": tokenizer.eos_token_id,
            "streamer": streamer,
        },
    )
    thread.start()
    deltas = list(streamer)
    thread.join()
    return {
        "text": parse_response(tokenizer, text, prefix=prompt, **options),
        "tokens": parse_response(tokenizer, torch.tensor(tokens, dtype=torch.long), prefix=prompt_tokens[0], **options)
        if tokens
        else parse_response(tokenizer, "", prefix=prompt, **options),
        "batch": parse_response(tokenizer, [text, text], prefix=prompt, **options),
        "streamed": streamer.message,
        "deltas": deltas,
    }


def version() -> str:
    return str(transformers.__version__)


if __name__ == "__main__":
    answer_requests(read=read, version=version)
