"""Expansion of `${NAME}` in a settings file, from the environment or from a `.env` file in the same folder."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from interlingua.gateway.settings.yaml_values import UndefinedVariable

__all__ = ["Variables"]

_REFERENCE = re.compile(r"\$\$|\$\{([^}]*)\}?")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DOTENV_LINE = re.compile(
    r"""\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*
    (?:'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|(?P<bare>[^'"\s].*?|))\s*(?:(?<!\S)\#.*)?""",
    re.VERBOSE | re.ASCII,
)
_ESCAPES = {"n": "\n", "t": "\t"}


class Variables:
    """Variables of the environment and of the `.env` files in `folders`, first match wins."""

    def __init__(self, environment: Mapping[str, str], folders: Iterable[Path] = ()) -> None:
        self.notes: list[str] = []
        self._values = dict(environment)
        for path in dict.fromkeys(folder / ".env" for folder in folders):
            for name, value in self._read_dotenv(path).items():
                self._values.setdefault(name, value)

    def expand(self, text: str) -> str:
        return _REFERENCE.sub(self._substitute, text) if "$" in text else text

    def expanded_values(self, text: str) -> set[str]:
        """Return the value of each variable in the text, and the whole expanded text."""
        return {self.value(name) for name in _REFERENCE.findall(text) if name} | {self.expand(text)}

    def value(self, name: str) -> str:
        """Return the value of the variable.

        Raises:
            UndefinedVariable: The variable is not set or is empty. A key that the user forgot to set is often empty.
        """
        if not self._values.get(name):
            state = "is empty" if name in self._values else "is not set"
            close_matches = difflib.get_close_matches(
                name, (candidate for candidate in self._values if self._values[candidate]), n=1, cutoff=0.75
            )
            hint = (
                f"did you mean {close_matches[0]!r}?"
                if close_matches
                else "set it in the environment or in a .env file"
            )
            raise UndefinedVariable(f"the variable {name} {state}", hint)
        return self._values[name]

    def _substitute(self, reference: re.Match[str]) -> str:
        if reference[0] == "$$":
            return "$"
        if not reference[0].endswith("}") or not _VARIABLE_NAME.fullmatch(reference[1]):
            raise UndefinedVariable(
                f"{reference[0]!r} is not a variable reference", "write ${NAME}, or $$ for a dollar sign"
            )
        return self.value(reference[1])

    def _read_dotenv(self, path: Path) -> dict[str, str]:
        try:
            lines = path.read_text("utf-8-sig").splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeError) as error:
            self.notes.append(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not UTF-8'}")
            return {}
        values = {}
        for number, line in enumerate(lines, 1):
            match = _DOTENV_LINE.fullmatch(line)
            if match:
                values[match["name"]] = _unquote(match)
            elif line.strip() and not line.lstrip().startswith("#"):
                self.notes.append(f"{path}:{number}: line ignored, because it is not NAME=VALUE")
        return values


def _unquote(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), match["double"])
    return match["single"] if match["single"] is not None else match["bare"] or ""
