"""`interlingua config schema`: what may be set, as a JSON Schema, for editors."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from interlingua.cli.common import console as io
from interlingua.cli.dialects.show import field_docs
from interlingua.gateway.settings import schema as settings

NAME = "schema"
HELP = "what may be set, as a JSON Schema"
DESCRIPTION = (
    "Writes the JSON Schema of a settings file, with what each setting means. Editors use it to complete and check."
)
EPILOG = """\
examples:
  interlingua config schema > interlingua.schema.json
  # first line of interlingua.yaml, for editors with the YAML language server:
  # yaml-language-server: $schema=interlingua.schema.json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(_: argparse.Namespace) -> None:
    io.write_json(settings_schema())


def settings_schema() -> dict[str, Any]:
    """The types' own schema, with the docstrings of their fields."""
    json_schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(settings.Settings)}
    for name, definition in json_schema["$defs"].items():
        docs = struct_field_docs(getattr(settings, name))
        for field, property_schema in definition.get("properties", {}).items():
            if field in docs:
                property_schema["description"] = docs[field]
    return json_schema


def struct_field_docs(struct: type[msgspec.Struct]) -> dict[str, str]:
    """What is said of each field, those of its base classes first."""
    structs = [
        base for base in reversed(struct.__mro__) if issubclass(base, msgspec.Struct) and base is not msgspec.Struct
    ]
    return {name: " ".join(doc.split()) for one in structs for name, doc in field_docs(one).items()}
