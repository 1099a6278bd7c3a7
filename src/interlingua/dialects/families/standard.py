"""No native text: an upstream that already sends structured calls, or one that we do not know. Text is not scanned."""

from __future__ import annotations

from interlingua.parsing.dialect import Dialect

DIALECT = Dialect(name="standard", summary="no native text: structured calls are guarded, text passes unread")
