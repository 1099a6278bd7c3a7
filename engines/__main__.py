"""Real engines as judges of exported grammars and templates.

    python -m engines install                      create the environments in .engines: some minutes
    python -m engines decode                       sample 1,000 replies under each grammar; can be interrupted
    python -m engines decode --engine llama.cpp --only hermes,glm47 --count 100

    python -m engines compile                      measure the compile times of structural tags
    python -m engines report                       print docs/engines.md; with --write, write it

The tests that need the engines are in tests/exports/engines; `make test-full` runs them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from engines.compile_times import measure_compile_times
from engines.decoding import decode_all
from engines.environments import ENVIRONMENTS, ROOT, NotInstalled, install
from engines.releases import RELEASES, install_release
from engines.report import write_page

PAGE = ROOT / "docs" / "engines.md"


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        match args.command:
            case "install":
                for name in ENVIRONMENTS:
                    install(name)
                for package, versions in RELEASES.items():
                    for version in versions:
                        install_release(package, version)
            case "decode":
                decode_all(args.engine, args.count, args.only)
            case "compile":
                measure_compile_times()
            case "report":
                page = write_page()
                if args.write:
                    PAGE.write_text(page, encoding="utf-8")
                else:
                    print(page, end="")
    except NotInstalled as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m engines", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("install", help="create the environments")
    decode = commands.add_parser("decode", help="sample replies of a tiny model under each grammar")
    decode.add_argument("--engine", choices=("transformers", "llama.cpp"), default="transformers")
    decode.add_argument("--count", type=int, default=1000, help="replies for each grammar; default: 1000")
    decode.add_argument("--only", type=lambda text: text.split(","), default=[], metavar="DIALECT,…")
    commands.add_parser("compile", help="measure how long xgrammar takes for the tag of each dialect, with 40 tools")
    report = commands.add_parser("report", help="print docs/engines.md, from the results of the other commands")
    report.add_argument("--write", action="store_true", help="write the page")
    return parser


if __name__ == "__main__":
    sys.exit(main())
