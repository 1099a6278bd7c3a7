"""Export of one exchange as a page of its own: one file without network, with all styles, scripts and data in it."""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
from importlib import resources

import msgspec

from interlingua.errors import InterlinguaError
from interlingua.gateway.inspector.analyses import Analyses
from interlingua.inspection.what_if import Changes

__all__ = ["bundle_modules", "export_page"]

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (async function|function|class|const|let) (\w+)", re.MULTILINE)
_ANY_MODULE_SYNTAX = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
MAIN_MODULE = "main.js"
TITLE = "Interlingua inspector"


def export_page(analyses: Analyses, id: str) -> bytes:
    """Return the page of one exchange."""
    detail = analyses.detail(id)
    data = {
        "info": analyses.info(),
        "exchanges": [detail.summary],
        "detail": detail,
        "reply": _lines(analyses, id),
        "request": _or_error(lambda: analyses.request(id)),
        "cache": _or_error(lambda: analyses.cache(id)),
        "waterfall": analyses.waterfall(id),
    }
    # In a script element, only `</script` and `<!--` have a meaning: no `<` is left.
    encoded = msgspec.json.encode(data).decode("utf-8", "replace").replace("<", "\\u003c")
    style, script = _read_page("style.css"), bundle_modules()
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{TITLE}</title>
<style>{style}</style>
</head>
<body>
<div id="app"></div>
<script type="application/json" id="embedded-data">{encoded}</script>
<script>{script}</script>
</body>
</html>
""".encode("utf-8", "replace")


def _lines(analyses: Analyses, id: str) -> object:
    """Return the timeline of the reply, or the error if there is none."""
    return _or_error(lambda: [msgspec.Raw(line) for line in analyses.reply(id, Changes())])


def _or_error(compute: object) -> object:
    assert callable(compute)
    try:
        return compute()
    except InterlinguaError as error:
        return {"error": str(error), "hint": error.hint}


def bundle_modules() -> str:
    """Return all modules of the page as one script.

    Modules use one form of `import` and of `export` only, which become a lookup and an entry in a table.
    """
    order: list[str] = []
    _add_module(MAIN_MODULE, order, ())
    parts = ['"use strict";', "const modules = {};"]
    for name in order:
        source = _read_page(name)
        exported = [match[2] for match in _EXPORT.finditer(source)]
        body = _IMPORT.sub(lambda match: _lookup(match, name), source)  # noqa: B023 (it is called at once)
        body = _EXPORT.sub(r"\1 \2", body)
        if left := _ANY_MODULE_SYNTAX.search(body):
            raise AssertionError(f"{name}: {left[0]!r} cannot be bundled")
        parts.append(f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {", ".join(exported)} }};\n}})();')
    return "\n".join(parts)


def _lookup(match: re.Match[str], importer: str) -> str:
    return f'const {{{_renamed(match[1])}}} = modules["{_resolve(match[2], importer)}"];\n'


def _resolve(path: str, importer: str) -> str:
    """Return the path of a module from the folder of the page."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))


def _renamed(names: str) -> str:
    """Return imported names as a pattern: `a as b` is `a: b`."""
    return re.sub(r"(\w+) as (\w+)", r"\1: \2", names)


def _add_module(name: str, order: list[str], path: tuple[str, ...]) -> None:
    """Add a module after those that it imports."""
    assert name not in path, f"modules import each other: {' → '.join([*path, name])}"
    if name in order:
        return
    for match in _IMPORT.finditer(_read_page(name)):
        _add_module(_resolve(match[2], name), order, (*path, name))
    order.append(name)


def _read_page(name: str) -> str:
    return (resources.files("interlingua.gateway.inspector") / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
