"""YAML that a person wrote, as nodes that know their line: no tags, no aliases, no field twice, not too much of it."""

from __future__ import annotations

import yaml

from interlingua.errors import BadInput, shortened

__all__ = ["NULL", "TEXT", "came", "compose", "place"]

TEXT, NULL = "tag:yaml.org,2002:str", "tag:yaml.org,2002:null"

LONGEST = 64 * 1024
DEEPEST = 20
_quoted = 'a text that begins with {0} is quoted: "{0}…"'.format
_HINT = "write YAML, with every marker in double quotes"
_CAME = {"bool": "the truth value", "int": "the number", "float": "the number", "timestamp": "the date"}


def compose(text: str, where: str, longest: int = LONGEST, otherwise: str = _HINT) -> yaml.Node:
    """The one document in the text. `where` is what errors call it, and `otherwise` their hint if none is better."""
    if len(text) > longest:
        raise BadInput(f"{where} has {len(text)} characters, and {longest} are the most", "is it the right file?")
    try:
        node = _Loader(text, where).get_single_node()
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise BadInput(f"{where}{line}: {error.problem or error.context}", _hint(error, text) or otherwise) from None
    except yaml.YAMLError as error:
        raise BadInput(f"{where}: {str(error).splitlines()[0]}", otherwise) from None
    if node is None:
        raise BadInput(f"{where} is empty", otherwise)
    return node


def _hint(error: yaml.MarkedYAMLError, text: str) -> str:
    """What to do about signs that mean one thing to people and another one to YAML; "": it is none of them."""
    if "alias" in str(error.context):  # `*kimi*` is a glob to people
        return _quoted("*")
    at = error.problem_mark.index if error.problem_mark else 0
    if at and text[at - 1 : at + 1] == "${":  # `{key: ${NAME}}` has a mapping in it
        name = text[at + 1 : at + 100].partition("}")[0].partition("\n")[0]
        return f'inside of {{…}} and […] it is quoted: "${{{name}}}"'
    return ""


def place(where: str, node: yaml.Node | yaml.Event) -> str:
    """The file and the line."""
    return f"{where}:{node.start_mark.line + 1}" if node.start_mark else where


def came(node: yaml.Node) -> str:
    """What is there, in words."""
    if not isinstance(node, yaml.ScalarNode):
        return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"
    if node.tag == NULL:
        return "nothing"
    kind = _CAME.get(node.tag.rpartition(":")[2])
    if kind:
        return f"{kind} {node.value}, which is a text only in quotes"
    return f"the text {shortened(node.value, 40)!r}"


class _Loader(yaml.SafeLoader):
    """Composes nodes only: what they mean is for those who know what is expected."""

    def __init__(self, text: str, where: str) -> None:
        super().__init__(text)
        self._where = where
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self._refuse_references(event)
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._wrong(event, f"this is nested deeper than {DEEPEST} levels", _HINT)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, yaml.MappingNode):
            self._check_names([key for key, _ in node.value])
        return node

    def _refuse_references(self, event: yaml.NodeEvent) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise self._wrong(event, "an alias cannot be used here", _quoted("*"))
        if event.anchor is not None:
            raise self._wrong(event, "an anchor cannot be used here", _quoted("&"))
        if getattr(event, "tag", None) is not None:
            raise self._wrong(event, "a tag cannot be used here", _quoted("!"))

    def _check_names(self, keys: list[yaml.Node]) -> None:
        seen: set[str] = set()
        for key in keys:
            if not isinstance(key, yaml.ScalarNode):
                raise self._wrong(key, "a field's name cannot be a list or a mapping", "write `field: value`")
            if key.value in seen:
                raise self._wrong(key, f"the field {key.value!r} is there twice", "leave one of them out")
            seen.add(key.value)

    def _wrong(self, at: yaml.Node | yaml.Event, problem: str, hint: str) -> BadInput:
        return BadInput(f"{place(self._where, at)}: {problem}", hint)
