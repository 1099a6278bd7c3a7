"""Limit of open file descriptors (`ulimit -n`), and the limits on connections and streams that fit into it."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import suppress

import msgspec

from interlingua.gateway.settings.schema import RequestLimits

__all__ = [
    "EXHAUSTED_HINT",
    "HEALTH_DESCRIPTORS",
    "describe_reduced_limits",
    "descriptor_limit",
    "descriptors_exhausted",
    "fit_limits",
    "is_reserved",
    "raise_descriptor_limit",
]

FILE_DESCRIPTORS = 50
"""Number of descriptors for the log, captures, sockets that listen and other files of a process."""
HEALTH_DESCRIPTORS = 50
"""Number of descriptors for connections beyond the limits: health checks, and clients that receive an error."""
RESERVED_DESCRIPTORS = FILE_DESCRIPTORS + HEALTH_DESCRIPTORS
UNLIMITED = 1 << 30
EXHAUSTED_ERRORS = frozenset({errno.EMFILE, errno.ENFILE})
EXHAUSTED_HINT = "raise the limit (ulimit -n; LimitNOFILE of systemd), or lower limits.connections and limits.streams"


def descriptor_limit() -> int:
    """Return the number of descriptors that this process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Raise the limit to the hard limit, if the system allows it: each stream needs two connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # some systems enforce a lower limit than the reported hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def fit_limits(limits: RequestLimits) -> RequestLimits:
    """Return the limits, reduced if this process cannot open enough descriptors for them.

    A stream needs a connection to its client and one to an upstream. Other client connections need one each.
    """
    available = max(2, descriptor_limit() - RESERVED_DESCRIPTORS)
    streams = min(limits.streams, available // 2)
    connections = min(limits.connections, available - streams)
    if (streams, connections) == (limits.streams, limits.connections):
        return limits
    return msgspec.structs.replace(limits, streams=streams, connections=connections)


def describe_reduced_limits(limits: RequestLimits) -> str:
    """Return a warning for the user if these limits have to be reduced; otherwise ""."""
    fitting = fit_limits(limits)
    if fitting is limits:
        return ""
    return (
        f"at most {descriptor_limit()} files can be open (ulimit -n): each worker handles at most {fitting.streams} "
        f"concurrent requests (limits.streams is {limits.streams}) and {fitting.connections} connections "
        f"(limits.connections is {limits.connections})"
    )


def is_reserved(descriptor: int) -> bool:
    """Return whether this descriptor is one of the last ones, which are kept for health checks.

    The system assigns the lowest free number. So all lower ones are in use, by whatever part of the process.
    """
    return descriptor >= descriptor_limit() - HEALTH_DESCRIPTORS


def descriptors_exhausted(error: BaseException) -> bool:
    """Return whether an operation failed because no descriptor is left.

    The error does not always state it: a failed name resolution reports only that it failed. So one is opened to see.
    """
    os_error = getattr(error, "os_error", error)
    if isinstance(os_error, OSError) and os_error.errno in EXHAUSTED_ERRORS:
        return True
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as probe_error:
        return probe_error.errno in EXHAUSTED_ERRORS
    return False
