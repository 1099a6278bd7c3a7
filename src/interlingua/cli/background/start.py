"""`interlingua start`: the gateway, in the background."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from interlingua import __version__
from interlingua.cli import io, serve, serve_options
from interlingua.cli.background.instances import DEFAULT, Instance, Instances, add_name, named
from interlingua.cli.background.log_lines import Mark
from interlingua.cli.background.processes import beginning
from interlingua.errors import BadInput
from interlingua.gateway.settings_file import Loaded
from interlingua.gateway.settings_flags import Flags

HELP = "the gateway in the background, until `interlingua stop`"
DESCRIPTION = """\
Starts what `interlingua serve` runs, without a terminal, and returns once it
listens. It goes on in this folder and with this environment: keys come from
there, or from the settings file, and stand on no command line.

What is known of it is kept in $XDG_STATE_HOME/interlingua, else in
~/.local/state/interlingua, and so is its log, in at most three files of 10 MB."""
EPILOG = """\
examples:
  interlingua start --demo
  interlingua start --upstream http://localhost:8000/v1 --port 9000 --name local
  interlingua status; interlingua logs -f; interlingua stop

exit status: 1 if it is running already, or does not start; its log is shown then
"""
PATIENCE = 60.0
"""Seconds in which it has to listen."""
SHOWN = 20
"""Lines of the log of one that did not start."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_name(parser)
    serve_options.add_options(parser)


def run(args: argparse.Namespace) -> None:
    from interlingua.gateway.serve import check  # other commands need no aiohttp

    name = named(args)
    loaded = serve_options.loaded(args)
    check(loaded)  # what is wrong is told here, and not by a log
    instances = Instances()
    with instances.locked(name):
        _check_that_none_runs(instances, name)
        log = Path(loaded.settings.log.file or instances.log_of(name)).absolute()
        instance = _started(instances, name, loaded, log, _arguments(args))
    again = "" if name == DEFAULT else f" --name {name}"
    _, _, port = instance.address.rpartition(":")
    _, _, what_to_paste = serve.hello(loaded.settings, loaded, int(port)).partition("\n")
    io.tell(f"interlingua: listening on {instance.address} (process {instance.pid}, in the background)")
    io.tell(what_to_paste)
    io.tell(f"  its log:  interlingua logs -f{again}  ({log})")
    io.tell(f"  stop it:  interlingua stop{again}")


def _check_that_none_runs(instances: Instances, name: str) -> None:
    found = instances.find(name)
    if found is None:
        return
    again = "" if name == DEFAULT else f" --name {name}"
    if found.runs:
        where = found.address or "and has yet to listen"
        raise BadInput(
            f"it is running already: {where} (process {found.pid})",
            f"`interlingua stop{again}` ends it; another one needs a --name and a --port of its own",
        )
    instances.forget(name)
    io.tell(f"note: the one before, process {found.pid}, ended without `interlingua stop`")


def _arguments(args: argparse.Namespace) -> list[str]:
    """Those of `serve`. None of them is a secret: keys have no option."""
    given = {"config": args.config, **{name: getattr(args, name) for name in Flags.__struct_fields__}}
    given = {f"--{name.replace('_', '-')}": value for name, value in given.items() if value}
    return [option if option == "--demo" else f"{option}={value}" for option, value in given.items()]


def _started(instances: Instances, name: str, loaded: Loaded, log: Path, arguments: list[str]) -> Instance:
    mark = Mark(log)
    with _told_by_socket() as listener:
        process = _detached(log, arguments, listener.getsockname())
        try:
            instance = Instance(
                name=name,
                pid=process.pid,
                began=beginning(process.pid),
                since=time.time(),
                version=__version__,
                log=str(log),
                drain=loaded.settings.drain,
                workers=loaded.settings.workers,
            )
            instances.save(instance)
            address = _address(listener, process, mark)
            instance = structs.replace(instance, address=address)
            instances.save(instance)
            return instance
        except BaseException:  # also Ctrl-C: nobody would know of it
            process.kill()
            process.wait()
            instances.forget(name)
            raise


def _detached(log: Path, arguments: list[str], told: str) -> subprocess.Popen[bytes]:
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadInput(f"cannot write the log {log}: {error.strerror}", "is it a link? move it away") from error
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "interlingua", "serve", *arguments],
            env={**os.environ, "INTERLINGUA_LOG__FILE": str(log), "NOTIFY_SOCKET": told},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)


@contextmanager
def _told_by_socket() -> Iterator[socket.socket]:
    """Where it says that it listens, as it would say it to systemd. The path of a socket has to be short."""
    with (
        tempfile.TemporaryDirectory(prefix="interlingua-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener,
    ):
        listener.bind(f"{folder}/ready")
        listener.settimeout(0.05)
        yield listener


def _address(listener: socket.socket, process: subprocess.Popen[bytes], mark: Mark) -> str:
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        try:
            ready, _, status = listener.recv(4096).decode().partition("\n")
        except TimeoutError:
            continue
        if ready == "READY=1":
            return status.rpartition(" ")[2]
    lines = mark.behind().decode("utf-8", "replace").splitlines()
    if process.returncode is None:
        problem = f"it does not listen after {PATIENCE:.0f} seconds, and was ended"
    else:
        problem = f"it ended at once, with status {process.returncode}"
    told = [io.printable(line) for line in lines[-SHOWN:] if line]
    io.tell("\n".join(["its log:", *(f"  {line}" for line in told)]) if told else "its log is empty")
    raise BadInput(f"the gateway has not started: {problem}", "its log says why; `interlingua serve` shows it at once")
