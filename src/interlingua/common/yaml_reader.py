"""Strict YAML reader that returns nodes with line numbers: no tags, aliases or duplicate fields, and limited size."""

from __future__ import annotations

import yaml

from interlingua.errors import BadInput, shorten

__all__ = ["NULL_TAG", "TEXT_TAG", "compose", "describe_node", "node_location", "plain_scalar"]

TEXT_TAG, NULL_TAG = "tag:yaml.org,2002:str", "tag:yaml.org,2002:null"

MAX_TEXT_CHARS = 64 * 1024
MAX_DEPTH = 20
_quoting_hint = 'put text that starts with {0} in quotes: "{0}…"'.format
_DEFAULT_HINT = "write YAML, with every marker in double quotes"
_SCALAR_DESCRIPTIONS = {"bool": "the boolean", "int": "the number", "float": "the number", "timestamp": "the date"}
_resolver = yaml.resolver.Resolver()


def compose(
    text: str, source_name: str, max_chars: int = MAX_TEXT_CHARS, default_hint: str = _DEFAULT_HINT
) -> yaml.Node:
    """Parse the only document in the text.

    Args:
        text: The YAML text.
        source_name: The name of the text in error messages.
        max_chars: Maximum length of the text.
        default_hint: Hint for errors that have no more specific one.
    """
    if len(text) > max_chars:
        raise BadInput(
            f"{source_name} has {len(text)} characters; the maximum is {max_chars}", "check that it is the right file"
        )
    try:
        node = _Loader(text, source_name, default_hint).get_single_node()
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise BadInput(
            f"{source_name}{line}: {error.problem or error.context}", _hint(error, text) or default_hint
        ) from None
    except yaml.YAMLError as error:
        raise BadInput(f"{source_name}: {str(error).splitlines()[0]}", default_hint) from None
    if node is None:
        raise BadInput(f"{source_name} is empty", default_hint)
    return node


def _hint(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return a hint for characters that have a special meaning in YAML, or "" for other errors."""
    if "alias" in str(error.context):  # users write `*kimi*` as a glob
        return _quoting_hint("*")
    offset = error.problem_mark.index if error.problem_mark else 0
    if offset and text[offset - 1 : offset + 1] == "${":  # `{key: ${NAME}}` has a mapping in it
        name = text[offset + 1 : offset + 100].partition("}")[0].partition("\n")[0]
        return f'quote it inside of {{…}} and […]: "${{{name}}}"'
    return ""


def node_location(source_name: str, node: yaml.Node | yaml.Event) -> str:
    """Return the source name and the line."""
    return f"{source_name}:{node.start_mark.line + 1}" if node.start_mark else source_name


def plain_scalar(text: str) -> yaml.ScalarNode:
    """Return the text as an unquoted YAML scalar: a number if it looks like a number."""
    tag = _resolver.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return yaml.ScalarNode(tag, text)


def describe_node(node: yaml.Node, *, suggest_quotes: bool) -> str:
    """Describe the node for an error message. `suggest_quotes` adds how to make a text of another scalar."""
    if not isinstance(node, yaml.ScalarNode):
        return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"
    if node.tag == NULL_TAG:
        return "nothing"
    description = _SCALAR_DESCRIPTIONS.get(node.tag.rpartition(":")[2])
    if description:
        return f"{description} {node.value}{'; put it in quotes to make it text' if suggest_quotes else ''}"
    return f"the text {shorten(node.value, 40)!r}"


class _Loader(yaml.SafeLoader):
    """Loader that composes nodes only; the caller interprets them."""

    def __init__(self, text: str, source_name: str, default_hint: str) -> None:
        super().__init__(text)
        self._source_name = source_name
        self._default_hint = default_hint
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self._reject_references(event)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(event, f"nested deeper than {MAX_DEPTH} levels", self._default_hint)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, yaml.MappingNode):
            self._check_keys([key for key, _ in node.value])
        return node

    def _reject_references(self, event: yaml.NodeEvent) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise self._error(event, "aliases are not allowed here", _quoting_hint("*"))
        if event.anchor is not None:
            raise self._error(event, "anchors are not allowed here", _quoting_hint("&"))
        if getattr(event, "tag", None) is not None:
            raise self._error(event, "tags are not allowed here", _quoting_hint("!"))

    def _check_keys(self, keys: list[yaml.Node]) -> None:
        seen: set[str] = set()
        for key in keys:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a field name cannot be a list or a mapping", "write `field: value`")
            if key.value in seen:
                raise self._error(key, f"duplicate field {key.value!r}", "remove one of them")
            seen.add(key.value)

    def _error(self, node: yaml.Node | yaml.Event, problem: str, hint: str) -> BadInput:
        return BadInput(f"{node_location(self._source_name, node)}: {problem}", hint)
