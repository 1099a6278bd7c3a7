"""What `${NAME}` stands for in a settings file: a variable of the environment, or of a `.env` file beside it."""

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
    def __init__(self, environment: Mapping[str, str], folders: Iterable[Path] = ()) -> None:
        """The environment, then the `.env` files of these folders, in turn."""
        self.notes: list[str] = []
        self._values = dict(environment)
        for path in dict.fromkeys(folder / ".env" for folder in folders):
            for name, value in self._read_dotenv(path).items():
                self._values.setdefault(name, value)

    def expand(self, text: str) -> str:
        return _REFERENCE.sub(self._substitute, text) if "$" in text else text

    def expanded_values(self, text: str) -> set[str]:
        """What variables make of it: each one's value, and the whole."""
        return {self.value(name) for name in _REFERENCE.findall(text) if name} | {self.expand(text)}

    def value(self, name: str) -> str:
        """NoVariable if it is not set; what is set to nothing counts as that, for that is how a forgotten key looks."""
        if not self._values.get(name):
            state = "is empty" if name in self._values else "is not set"
            close_matches = difflib.get_close_matches(
                name, (candidate for candidate in self._values if self._values[candidate]), n=1, cutoff=0.75
            )
            hint = (
                f"did you mean {close_matches[0]!r}?"
                if close_matches
                else "set it in the environment, or in a file .env"
            )
            raise UndefinedVariable(f"the variable {name} {state}", hint)
        return self._values[name]

    def _substitute(self, reference: re.Match[str]) -> str:
        if reference[0] == "$$":
            return "$"
        if not reference[0].endswith("}") or not _VARIABLE_NAME.fullmatch(reference[1]):
            raise UndefinedVariable(f"{reference[0]!r} names no variable", "write ${NAME}, or $$ for a dollar sign")
        return self.value(reference[1])

    def _read_dotenv(self, path: Path) -> dict[str, str]:
        try:
            lines = path.read_text("utf-8-sig").splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeError) as error:
            self.notes.append(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}")
            return {}
        values = {}
        for number, line in enumerate(lines, 1):
            match = _DOTENV_LINE.fullmatch(line)
            if match:
                values[match["name"]] = _unquote(match)
            elif line.strip() and not line.lstrip().startswith("#"):
                self.notes.append(f"{path}:{number}: this is not NAME=VALUE, and is left out")
        return values


def _unquote(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), match["double"])
    return match["single"] if match["single"] is not None else match["bare"] or ""
