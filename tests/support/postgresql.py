"""A PostgreSQL server on loopback, for the tests of one file."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["find_programs", "run_postgresql"]

USER = "postgres"


def find_programs() -> Path | None:
    """Return the directory of `initdb` and `pg_ctl`, also where Debian installs them; None if they are missing."""
    folders = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), *map(Path, os.get_exec_path())]
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


@contextmanager
def run_postgresql(programs: Path) -> Iterator[str]:
    """Run a server with an empty database until the block ends. Yields its URL."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        as_user: list[str] = []
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(folder, USER)
            as_user = ["runuser", "-u", USER, "--"]
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]

        def run(*command: str) -> None:
            subprocess.run([*as_user, *command], cwd=folder, check=True, stdout=subprocess.DEVNULL)

        run(str(programs / "initdb"), "-D", f"{folder}/data", "-U", USER, "-A", "trust", "--no-sync")
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
        control = (str(programs / "pg_ctl"), "-D", f"{folder}/data", "-w", "-t", "60")
        run(*control, "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql://{USER}@127.0.0.1:{port}/postgres"
        finally:
            run(*control, "-m", "immediate", "stop")
