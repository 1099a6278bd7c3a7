"""Demo model: scripted replies in the native text of any dialect, without API key and network.

`prompt_language` parses the prompt, `argument_faker` generates arguments, `planner` plans the reply, `tokenizer` splits
it into tokens, `server` sends it.
"""

from interlingua.gateway.demo.server import DEMO_DIALECTS, start_demo_server

__all__ = ["DEMO_DIALECTS", "start_demo_server"]
