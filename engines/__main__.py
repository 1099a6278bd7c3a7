"""Real engines as judges of exported grammars and templates.

    python -m engines install                      create the environments in .engines: some minutes
    python -m engines decode                       sample 1,000 replies under each grammar; can be interrupted
    python -m engines decode --engine llama.cpp --only hermes,glm47 --count 100

The tests that need the engines are in tests/exports/engines; `make engines-test` runs them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from engines.decoding import decode_all
from engines.environments import ENVIRONMENTS, NotInstalled, install
from engines.releases import RELEASES, install_release


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
    return parser


if __name__ == "__main__":
    sys.exit(main())
