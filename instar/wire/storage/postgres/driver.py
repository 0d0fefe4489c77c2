"""Typed interface of the PostgreSQL driver, asyncpg, and its lazy import.

Imported by the other modules of the package. The driver itself is loaded at the first connection,
because servers on other stores may run without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Protocol

from instar.wire.storage.store import StoreError

Row = Sequence[Any]


class Notice(Protocol):
    """A warning or notice of the server."""

    sqlstate: str


class PreparedStatement(Protocol):
    """A statement that the server has parsed, for the connection that prepared it."""

    async def fetchval(self, *args: Any) -> Any: ...


class Connection(Protocol):
    """The methods of ``asyncpg.Connection`` that this package uses."""

    async def fetch(self, query: str, *args: Any) -> Sequence[Row]: ...

    async def fetchrow(self, query: str, *args: Any) -> Row | None: ...

    async def fetchval(self, query: str, *args: Any) -> Any: ...

    async def execute(self, query: str) -> str: ...

    async def prepare(self, query: str) -> PreparedStatement: ...

    def cursor(self, query: str, *args: Any, prefetch: int = 50) -> Any: ...

    def transaction(self, *, isolation: str, readonly: bool) -> Any: ...

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None: ...

    async def remove_listener(self, channel: str, callback: Callable[..., None]) -> None: ...

    def get_server_pid(self) -> int: ...

    def add_log_listener(self, callback: Callable[[Any, Notice], None]) -> None: ...

    def add_termination_listener(self, callback: Callable[[Any], None]) -> None: ...

    def is_closed(self) -> bool: ...

    def terminate(self) -> None: ...

    async def close(self, *, timeout: float | None = None) -> None: ...  # noqa: ASYNC109


def load_driver() -> ModuleType:
    """Return the module ``asyncpg``. Raises ``StoreError`` where it is not installed."""
    try:
        # Imported here, because servers on a file or on etcd do not need it.
        import asyncpg
    except ImportError as error:
        raise StoreError(
            f"PostgreSQL needs asyncpg: pip install 'instar[postgresql]' ({error})"
        ) from error
    module: ModuleType = asyncpg
    return module
