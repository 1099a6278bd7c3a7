"""Arguments that are one JSON object: `framed_json`, `json_envelope`, `channels`."""

from __future__ import annotations

from interlingua.exports.arguments.base import SAMPLE_KEY
from interlingua.exports.grammar import Json, Node
from interlingua.exports.value_types import Object

__all__ = ["JsonArguments"]


class JsonArguments:
    sample = written_sample = f'{{"{SAMPLE_KEY}": 0}}'

    def arguments(self, type_: Object) -> Node:
        return Json(type_)
