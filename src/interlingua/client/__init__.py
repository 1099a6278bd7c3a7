"""For programs that call models themselves: what a reply is so far, whether its calls are right, and running them."""

from interlingua.client.accumulator import Accumulator

__all__ = ["Accumulator"]
