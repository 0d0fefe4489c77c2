"""Endpoint ``POST /instar/backup``: a copy of the whole store of this running server.

``server/app.py`` calls it after authorization; ``instar storage backup`` reads it. The copy has
every Secret, so it is a POST: roles that may ``get`` ``/instar/*`` do not include it. The store
makes the copy (``wire/storage/sqlite/backup.py``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from instar.base.errors import MethodNotAllowed, ServiceUnavailable
from instar.server.http.messages import Header, Request, Response
from instar.server.registry.stored.backend import Backend
from instar.wire.storage.store import HotBackup, Local, StoreError, unwrapped_store

PATH = "/instar/backup"
PATHS = {
    PATH: "POST: a copy of the SQLite file of this server, made while it is in use; it has every "
    "Secret, and is granted by the verb `post`: `instar storage backup`",
}
"""Path → description; the API reference in the docs is generated from it."""
_SQLITE: Header = (b"content-type", b"application/vnd.sqlite3")
_PIECE = 256 << 10
_ELSEWHERE = (
    "this server keeps its objects in etcd or PostgreSQL; back up the store itself: "
    "instar storage backup etcd://HOST:PORT FILE, or pg_dump"
)
IN_MEMORY = "this server keeps its objects in memory only; instar snapshot captures them"


async def respond(backend: Backend, request: Request) -> Response | None:
    """Return the copy; None for other paths."""
    if request.path != PATH:
        return None
    if request.method != "POST":
        raise MethodNotAllowed("a backup is made by POST")
    store = unwrapped_store(backend.store)
    if not isinstance(store, HotBackup):
        raise MethodNotAllowed(IN_MEMORY if isinstance(store, Local) else _ELSEWHERE)
    request.patience = 0.0  # a large file takes longer than other responses
    try:
        path = await store.backup()
    except StoreError as error:
        raise ServiceUnavailable(str(error)) from error
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    path.unlink()
    size = os.fstat(file).st_size
    return Response(200, _Pieces(file), [_SQLITE], length=size, held=_PIECE)


class _Pieces:
    """Content of an unnamed file, read while it is sent; closed with the response."""

    def __init__(self, file: int) -> None:
        self._file = os.fdopen(file, "rb")

    def __iter__(self) -> Iterator[bytes]:
        with self._file:
            while piece := self._file.read(_PIECE):
                yield piece
