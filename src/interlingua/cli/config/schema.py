"""`interlingua config schema`: print the JSON Schema of the settings file, for editors."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from interlingua.cli.common import console
from interlingua.cli.dialects.show import field_docs
from interlingua.gateway.settings import schema

DESCRIPTION = (
    "Prints the JSON Schema of the settings file, with a description of each setting.\n"
    "Editors use it for completion and validation."
)
EPILOG = """\
examples:
  interlingua config schema > interlingua.schema.json
  # first line of interlingua.yaml, for editors with the YAML language server:
  # yaml-language-server: $schema=interlingua.schema.json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no options."""


def run(_: argparse.Namespace) -> None:
    console.write_json(settings_schema())


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of the settings types, with the field docstrings as descriptions."""
    json_schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(schema.Settings)}
    for name, definition in json_schema["$defs"].items():
        docs = struct_field_docs(getattr(schema, name))
        for field, property_schema in definition.get("properties", {}).items():
            if field in docs:
                property_schema["description"] = docs[field]
    return json_schema


def struct_field_docs(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the docstring of each field, including inherited ones; base classes come first."""
    structs = [
        base for base in reversed(struct.__mro__) if issubclass(base, msgspec.Struct) and base is not msgspec.Struct
    ]
    return {name: " ".join(doc.split()) for base in structs for name, doc in field_docs(base).items()}
