"""Entry point of `python -m interlingua`."""

from interlingua.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
