"""Objects that only a garbage collection frees."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["saved_garbage"]


@contextmanager
def saved_garbage() -> Iterator[list[Any]]:
    """Collect what only a garbage collection frees, with everything that it holds."""
    gc.collect()
    gc.disable()
    garbage: list[Any] = []
    try:
        yield garbage
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        garbage += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
