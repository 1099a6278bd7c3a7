"""Chat completions of llama-cpp-python with our handler. The model is tiny; a logits processor writes the reply."""

import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from answers import answer_requests
from llama_cpp import Llama, LogitsProcessorList
from llama_cpp_decoder import END, write_model

from interlingua.integrations.llama_cpp_handler import InterlinguaChatHandler

TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
MESSAGES = [{"role": "user", "content": "hi"}]


@cache
def make_llama() -> Llama:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bytes.gguf"
        write_model(path)
        return Llama(str(path), n_ctx=512, n_threads=1, verbose=False)


def complete(dialect: str, prompt_end: str, **options: Any) -> Any:
    llama = make_llama()
    llama.chat_handler = InterlinguaChatHandler(dialect, chat_template=TEMPLATE + prompt_end)
    return llama.create_chat_completion(MESSAGES, temperature=0.0, max_tokens=400, **options)


def read(*, dialect: str, text: str, tools: Any, prompt_end: str = "") -> dict[str, Any]:
    """Return the complete reply and the chunks of the streamed one."""

    def script() -> LogitsProcessorList:
        tokens = iter([*text.encode(), END])

        def force(_: Any, scores: Any) -> Any:
            forced = np.full_like(scores, -1e9)
            forced[next(tokens, END)] = 0
            return forced

        return LogitsProcessorList([force])

    whole = complete(dialect, prompt_end, tools=tools, logits_processor=script())
    chunks = complete(dialect, prompt_end, tools=tools, logits_processor=script(), stream=True)
    return {"whole": whole, "chunks": list(chunks)}


def require(*, dialect: str, tools: Any, tool_choice: Any) -> Any:
    """Return a reply of the random model that has to call a tool. It ends its turn as soon as the grammar allows it."""

    def prefer_end(_: Any, scores: Any) -> Any:
        scores[END] += 100
        return scores

    return complete(
        dialect, "", tools=tools, tool_choice=tool_choice, logits_processor=LogitsProcessorList([prefer_end])
    )


if __name__ == "__main__":
    answers = os.dup(1)
    os.dup2(2, 1)  # llama.cpp writes to standard output
    sys.stdout = os.fdopen(answers, "w")
    answer_requests(read=read, require=require)
