"""For programs that call models themselves: what a reply is so far, whether its calls are right, and running them."""

from interlingua.client.accumulator import Accumulator
from interlingua.client.results import ToolResult
from interlingua.client.toolbox import ToolBox

__all__ = ["Accumulator", "ToolBox", "ToolResult"]
