"""A complete agent: send a request, run the tools that the model calls, and repeat until the model answers.

    make run                        in one terminal: the gateway with its demo model, no key and no network
    python examples/agent.py        in another

With your own model: python examples/agent.py --url http://localhost:8000/v1 --model NAME "What is in README.md?"
"""

from __future__ import annotations

import argparse
import json
import os
import urllib.request
from pathlib import Path
from typing import Any

import interlingua as il

PROMPT = "Use list_files folder='.' and read_file path='Makefile' lines=3, then read_file path='LICENSE' lines=1"


def list_files(folder: str) -> list[str]:
    """List the files of a folder."""
    return sorted(path.name for path in Path(folder).iterdir())


def read_file(path: str, lines: int = 50) -> str:
    """Read the first lines of a file."""
    return "\n".join(Path(path).read_text(encoding="utf-8").splitlines()[:lines])


def send(url: str, model: str, messages: list[Any], box: il.ToolBox) -> il.Accumulator:
    body = {"model": model, "messages": messages, "tools": box.offer("openai-chat"), "stream": True}
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'any')}"}
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), headers)
    acc = il.Accumulator("openai-chat", model=model, tools=box.tools)
    with urllib.request.urlopen(request) as response:
        for line in response:
            acc.add(line)
    return acc


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("prompt", nargs="?", default=PROMPT)
    parser.add_argument("--url", default="http://127.0.0.1:8484/v1")
    parser.add_argument("--model", default="demo/kimi_k2")
    args = parser.parse_args()
    box, messages = il.ToolBox(list_files, read_file), list[Any]([{"role": "user", "content": args.prompt}])
    while (acc := send(args.url, args.model, messages, box)).calls and acc.finished:
        results = box.run_sync(acc.calls)
        for result in results:
            print(f"{result.call.name} {result.call.arguments} → {result.outcome}: {result.content[:60]!r}")
        messages += box.messages("openai-chat", acc.reply(), results)
    print(acc.text or f"no answer: {acc.why}")


if __name__ == "__main__":
    main()
