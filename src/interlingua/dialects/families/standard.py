"""Standard dialect: no native text. For upstreams that send structured calls, and for unknown ones. Text is not
scanned."""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect

DIALECT = Dialect(name="standard", summary="no native text: structured calls are normalized, text is not scanned")
