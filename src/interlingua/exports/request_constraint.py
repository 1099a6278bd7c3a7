"""Structural tag in a chat completions request: the fields in which engines take it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from interlingua.common.jsontext.codec import write_json
from interlingua.common.schema.resolver import as_mapping
from interlingua.errors import BadInput
from interlingua.exports.formats.structural_tag_reader import read_structural_tag
from interlingua.exports.matcher import Matcher
from interlingua.upstreams.profile import ConstraintField

__all__ = ["constraint_fields", "read_constraint"]

TAG_TYPE = "structural_tag"


def constraint_fields(field: ConstraintField, tag: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a request with this tag: as vLLM takes it (`structured_outputs`), or as SGLang does."""
    match field:
        case "structured_outputs":
            return {"structured_outputs": {TAG_TYPE: write_json(tag)}}
        case "response_format":
            return {"response_format": tag}
        case "none":
            return {}


def read_constraint(request: Mapping[str, Any]) -> Matcher | None:
    """Return a matcher for the texts that a request allows; None if it has no tag.

    Raises:
        BadInput: The tag is invalid.
        NotExpressible: One of its schemas cannot be a grammar.
    """
    tag: Any = as_mapping(request.get("structured_outputs")).get(TAG_TYPE)
    response_format = as_mapping(request.get("response_format"))
    if tag is None and response_format.get("type") == TAG_TYPE:
        tag = response_format
    if tag is None:
        return None
    if isinstance(tag, str):
        try:
            tag = json.loads(tag)
        except ValueError:
            raise BadInput("the structural tag is not JSON", "send it as a string that contains JSON") from None
    return Matcher(read_structural_tag(tag))
