"""Databases of stored responses: SQLite, or PostgreSQL. Each transaction runs in a thread of its own pool."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from interlingua.errors import BadInput, InterlinguaError
from interlingua.gateway.settings.private_files import check_private_file, check_private_folder
from interlingua.gateway.settings.schema import State
from interlingua.gateway.settings.signing_key import state_folder

__all__ = ["Database", "DatabaseFailed", "Transaction", "open_database"]

BUSY_TIMEOUT_SECONDS = 10.0
"""Time for which a transaction waits for those of other processes."""
CONNECT_TIMEOUT_SECONDS = 10
POSTGRESQL_THREADS = 4
SCHEMA_LOCK = 0x1E57A7E
"""Number of the lock under which replicas create the tables of a PostgreSQL database."""
_PLACEHOLDER = re.compile(r":(\w+)")

P = ParamSpec("P")
T = TypeVar("T")


class DatabaseFailed(InterlinguaError):
    """The database cannot be opened, read or written."""

    status = 503

    def __init__(self, reason: str) -> None:
        super().__init__(
            "the database of stored responses failed", "retry later; the log of the gateway has the reason"
        )
        self.internal_reason = reason


class Connection(Protocol):
    """Connection to a database of either kind (PEP 249)."""

    def cursor(self) -> Any: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


class Driver(Protocol):
    """Differences between the two kinds of databases."""

    blob_type: str
    read_threads: int
    errors: tuple[type[Exception], ...]

    def connect(self) -> Connection: ...

    def begin(self, cursor: Any, *, write: bool) -> None:
        """Begin a transaction."""

    def lock_schema(self, cursor: Any) -> None:
        """Let no other process create tables until the end of the transaction."""

    def placeholders(self, sql: str) -> str:
        """Return the statement with placeholders as the driver expects them."""


class Transaction:
    """Statements of one transaction. Values have the placeholder `:name`."""

    def __init__(self, cursor: Any, driver: Driver) -> None:
        self._cursor = cursor
        self._driver = driver

    def execute(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows."""
        self._cursor.execute(self._driver.placeholders(sql), values)
        return list(self._cursor.fetchall()) if self._cursor.description else []

    def execute_for_each(self, sql: str, rows: Iterable[dict[str, Any]]) -> None:
        """Execute a statement once for each row of values."""
        self._cursor.executemany(self._driver.placeholders(sql), list(rows))

    @property
    def changed_rows(self) -> int:
        """Number of rows that the last statement has changed."""
        return int(self._cursor.rowcount)


class Database:
    """Runs transactions in threads: one thread for writes, so that they never wait for each other's locks."""

    def __init__(self, driver: Driver, tables: Iterable[str]) -> None:
        self._driver = driver
        self._tables = [sql.format(blob=driver.blob_type) for sql in tables]
        self._writer = ThreadPoolExecutor(1, "response-writer")
        self._readers = ThreadPoolExecutor(driver.read_threads, "response-reader")
        self._local = threading.local()  # a connection for each thread
        self._open_connections: list[Connection] = []
        self._has_tables = False

    async def write(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of the function, run in a transaction. Its changes are durable then."""
        return await self._run(self._writer, True, lambda transaction: work(transaction, *args, **kwargs))

    async def read(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of the function, run in a transaction that changes nothing."""
        return await self._run(self._readers, False, lambda transaction: work(transaction, *args, **kwargs))

    def close(self) -> None:
        for executor in (self._writer, self._readers):
            executor.shutdown(wait=True, cancel_futures=True)
        for connection in self._open_connections:
            with suppress(*self._driver.errors):
                connection.close()

    async def _run(self, executor: ThreadPoolExecutor, write: bool, work: Callable[[Transaction], T]) -> T:
        loop = asyncio.get_running_loop()
        if not self._has_tables:
            await loop.run_in_executor(self._writer, self._create_tables)
        return await loop.run_in_executor(executor, self._run_transaction, work, write)

    def _create_tables(self) -> None:
        if self._has_tables:
            return

        def create(transaction: Transaction) -> None:
            for sql in self._tables:
                transaction.execute(sql)

        self._run_transaction(create, write=True, creates_tables=True)
        self._has_tables = True

    def _run_transaction(self, work: Callable[[Transaction], T], write: bool, creates_tables: bool = False) -> T:
        """Run a transaction. A lost connection is opened again once: the database may have been restarted."""
        had_connection = getattr(self._local, "connection", None) is not None
        try:
            return self._try_transaction(work, write, creates_tables)
        except self._driver.errors as error:
            self._discard_connection()
            if not had_connection:
                raise DatabaseFailed(str(error)) from error
        try:
            return self._try_transaction(work, write, creates_tables)
        except self._driver.errors as error:
            self._discard_connection()
            raise DatabaseFailed(str(error)) from error

    def _try_transaction(self, work: Callable[[Transaction], T], write: bool, creates_tables: bool) -> T:
        connection = self._connection()
        try:
            cursor = connection.cursor()
            self._driver.begin(cursor, write=write)
            if creates_tables:
                self._driver.lock_schema(cursor)
            result = work(Transaction(cursor, self._driver))
            connection.commit()
        except BaseException:
            with suppress(*self._driver.errors):
                connection.rollback()
            raise
        return result

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._driver.connect()
            self._open_connections.append(connection)
        return connection

    def _discard_connection(self) -> None:
        connection: Connection | None = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            self._open_connections.remove(connection)
            with suppress(*self._driver.errors):
                connection.close()


def open_database(state: State, tables: Iterable[str]) -> Database | None:
    """Return the database of these settings, which connects when it is used first; None if state is off."""
    if state.store == "off":
        return None
    driver: Driver = _PostgresqlDriver(state.url) if state.store == "postgresql" else _SqliteDriver(state.path)
    return Database(driver, tables)


class _SqliteDriver:
    """SQLite in one file, which only its owner can read, shared by all workers of a gateway."""

    blob_type = "BLOB"
    read_threads = 1
    errors: tuple[type[Exception], ...] = (sqlite3.Error, OSError, BadInput)

    def __init__(self, path: str) -> None:
        self._path = Path(path).expanduser() if path else state_folder() / "responses.db"

    def connect(self) -> Connection:
        path = self._path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_private_folder(path.parent, "the directory of stored responses")
        # SQLite gives its other two files the mode of this one.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
        check_private_file(path, path.stat(), "database")
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # a commit survives a power failure
        return connection

    def begin(self, cursor: Any, *, write: bool) -> None:
        cursor.execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def lock_schema(self, cursor: Any) -> None:
        """Do nothing: a transaction that writes has the lock already."""

    def placeholders(self, sql: str) -> str:
        return sql


class _PostgresqlDriver:
    """PostgreSQL, shared by several replicas."""

    blob_type = "BYTEA"
    read_threads = POSTGRESQL_THREADS

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise BadInput(
                "state.store: PostgreSQL needs the package psycopg", "run pip install 'interlingua[postgresql]'"
            ) from None
        self._psycopg = psycopg
        self._url = url
        self.errors: tuple[type[Exception], ...] = (psycopg.Error, OSError)

    def connect(self) -> Connection:
        connection: Connection = self._psycopg.connect(self._url, connect_timeout=CONNECT_TIMEOUT_SECONDS)
        return connection

    def begin(self, cursor: Any, *, write: bool) -> None:
        """Do nothing: the first statement begins the transaction."""

    def lock_schema(self, cursor: Any) -> None:
        cursor.execute(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})")

    def placeholders(self, sql: str) -> str:
        return _PLACEHOLDER.sub(r"%(\1)s", sql)
