"""Decoder and judge: replies of a tiny model with random weights, by llama.cpp, constrained by GBNF or not."""

import ctypes
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gguf
import llama_cpp
import numpy as np
from answers import answer_requests
from habits import END, Habits

UNKNOWN = END + 1
VOCABULARY_SIZE = END + 2
EMBEDDING, FEED_FORWARD, LAYERS, HEADS, CONTEXT = 32, 64, 2, 2, 512


def write_model(path: Path) -> None:
    """Write a Llama with two layers and random weights, and one token for each byte."""
    generator = np.random.default_rng(7)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("bytes")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(EMBEDDING // HEADS)
    writer.add_vocab_size(VOCABULARY_SIZE)
    writer.add_tokenizer_model("llama")
    tokens = [f"<0x{byte:02X}>" for byte in range(256)] + ["</s>", "<unk>"]
    types = [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.CONTROL, gguf.TokenType.UNKNOWN]
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * VOCABULARY_SIZE)
    writer.add_token_types([int(type_) for type_ in types])
    writer.add_bos_token_id(END)
    writer.add_eos_token_id(END)
    writer.add_unk_token_id(UNKNOWN)

    def add(name: str, *shape: int) -> None:
        values = np.ones(shape) if "norm" in name else generator.normal(0, 0.05, shape)
        writer.add_tensor(name, values.astype(np.float32))

    add("token_embd.weight", VOCABULARY_SIZE, EMBEDDING)
    add("output_norm.weight", EMBEDDING)
    add("output.weight", VOCABULARY_SIZE, EMBEDDING)
    for layer in range(LAYERS):
        prefix = f"blk.{layer}"
        for name in ("attn_norm", "ffn_norm"):
            add(f"{prefix}.{name}.weight", EMBEDDING)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"{prefix}.{name}.weight", EMBEDDING, EMBEDDING)
        add(f"{prefix}.ffn_gate.weight", FEED_FORWARD, EMBEDDING)
        add(f"{prefix}.ffn_up.weight", FEED_FORWARD, EMBEDDING)
        add(f"{prefix}.ffn_down.weight", EMBEDDING, FEED_FORWARD)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Grammar:
    """A grammar in llama.cpp: which tokens it allows next."""

    def __init__(self, model: Any, text: str) -> None:
        vocabulary = llama_cpp.llama_model_get_vocab(model)
        self._sampler = llama_cpp.llama_sampler_init_grammar(vocabulary, text.encode(), b"root")
        if not self._sampler:
            raise ValueError("llama.cpp does not compile the grammar")
        self._candidates = (llama_cpp.llama_token_data * VOCABULARY_SIZE)()
        self._array = llama_cpp.llama_token_data_array(self._candidates, VOCABULARY_SIZE, -1, False)
        self._fields = np.frombuffer(self._candidates, dtype=[("id", "i4"), ("logit", "f4"), ("p", "f4")])

    def allowed(self) -> np.ndarray:
        """Return for each token whether it may come next."""
        self._fields["id"], self._fields["logit"] = np.arange(VOCABULARY_SIZE), 0.0
        self._array.size, self._array.selected, self._array.sorted = VOCABULARY_SIZE, -1, False
        llama_cpp.llama_sampler_apply(self._sampler, ctypes.byref(self._array))
        return self._fields["logit"] > -1e30

    def accept(self, token: int) -> None:
        llama_cpp.llama_sampler_accept(self._sampler, token)

    def reset(self) -> None:
        llama_cpp.llama_sampler_reset(self._sampler)

    def close(self) -> None:
        llama_cpp.llama_sampler_free(self._sampler)


class Decoder:
    def __init__(self, path: Path) -> None:
        self._llama = llama_cpp.Llama(
            str(path), n_ctx=CONTEXT, n_threads=1, n_threads_batch=1, verbose=False, logits_all=False
        )
        self._grammar: Grammar | None = None

    def compile(self, grammar: str) -> float:
        if self._grammar:
            self._grammar.close()
        self._grammar = None
        self._grammar = Grammar(self._llama.model, grammar)
        return 0.0

    def accepts(self, texts: list[str]) -> list[bool]:
        return [self._accepts(text) for text in texts]

    def _accepts(self, text: str) -> bool:
        assert self._grammar
        self._grammar.reset()
        for byte in text.encode():
            if not self._grammar.allowed()[byte]:
                return False
            self._grammar.accept(byte)
        return bool(self._grammar.allowed()[END])

    def sample(
        self,
        constraint: str | None,
        markers: list[str],
        endings: list[str],
        count: int,
        seed: int,
        max_tokens: int,
    ) -> list[dict[str, Any]]:
        """Return replies: the text, and whether the model has ended it. The constraint is GBNF, or None."""
        if constraint:
            self.compile(constraint)
        chance = np.random.default_rng(seed)
        habits = Habits(markers, endings, VOCABULARY_SIZE)
        tables = np.array(habits.bonus), np.array(habits.impatience), habits.next_state
        return [self._sample_one(bool(constraint), tables, chance, max_tokens) for _ in range(count)]

    def _sample_one(
        self, constrained: bool, tables: Any, chance: np.random.Generator, max_tokens: int
    ) -> dict[str, Any]:
        bonus, impatience, next_state = tables
        llama, grammar = self._llama, self._grammar if constrained else None
        if grammar:
            grammar.reset()
        llama.reset()
        llama.eval([END])
        written, state = b"", 0
        for length in range(max_tokens):
            logits = self._logits() + bonus[state] + length * impatience[state]
            if grammar:
                logits = np.where(grammar.allowed(), logits, -np.inf)
            weights = np.exp(logits - logits.max())
            token = int(chance.choice(VOCABULARY_SIZE, p=weights / weights.sum()))
            if grammar:
                grammar.accept(token)
            if token == END:
                return {"text": written.decode(errors="replace"), "ended": True}
            written += bytes([token])
            state = next_state[state][token]
            llama.eval([token])
        return {"text": written.decode(errors="replace"), "ended": False}

    def _logits(self) -> np.ndarray:
        pointer = llama_cpp.llama_get_logits_ith(self._llama.ctx, -1)
        return np.ctypeslib.as_array(pointer, (VOCABULARY_SIZE,)).astype(float)


def main() -> None:
    answers = os.dup(1)
    os.dup2(2, 1)  # llama.cpp writes to standard output
    sys.stdout = os.fdopen(answers, "w")
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder) / "bytes.gguf")
        decoder = Decoder(Path(folder) / "bytes.gguf")
        answer_requests(
            sample=decoder.sample,
            compile=decoder.compile,
            accepts=decoder.accepts,
            versions=lambda: {"llama-cpp-python": version("llama-cpp-python")},
        )


if __name__ == "__main__":
    main()
