"""Dialects: how each model family writes tool calls and thinking.

`il.dialects` is this package. It can be called, because `il.dialects()` was the first name of `il.list_dialects()`.
"""

import sys
from types import ModuleType

from interlingua.dialects.registry import DETECT_DIALECT, STANDARD_DIALECT, dialect_for, get_dialect, list_dialects
from interlingua.parsing.dialect import Dialect

__all__ = ["DETECT_DIALECT", "STANDARD_DIALECT", "dialect_for", "get_dialect", "list_dialects"]


class _CallablePackage(ModuleType):
    def __call__(self) -> tuple[Dialect, ...]:
        return list_dialects()


sys.modules[__name__].__class__ = _CallablePackage
