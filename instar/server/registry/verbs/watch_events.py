"""Lines of a watch stream: an event as JSON, and the interface of other representations.

``watch.py`` calls a renderer for each event, ``server/rest/watch_stream.py`` has those of protobuf,
tables and partial metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from instar.base.errors import ApiError, Internal
from instar.kube.api.encoding.json_text import encode
from instar.server.registry.stored.views import Views


class EventRenderer:
    """Encodes one event as a line of the stream, in the requested representation; this one as
    JSON."""

    costs_little = True
    """Whether an object of any size may be encoded in the event loop."""

    def __call__(self, type_: str, view: bytes) -> bytes:
        """``view`` is the object's JSON. Raises ``TooLargeForLoop``."""
        return plain_event(type_, view)

    async def prepare(self) -> None:
        """Called before the next event is encoded in a thread."""


def plain_event(type_: str, view: bytes) -> bytes:
    return b'{"type":"' + type_.encode() + b'","object":' + view + b"}\n"


def error_event(error: ApiError) -> bytes:
    return plain_event("ERROR", encode(error.to_status()))


def as_internal(error: ApiError) -> ApiError:
    """Return the error of an ERROR event. As upstream, an error without a reason becomes an
    InternalError; our own details stay."""
    if error.reason:
        return error
    wrapped, told = Internal(error.message), error.details or {}
    causes = [{"message": error.message}, *told.get("causes", ())]
    wrapped.details = {**told, "causes": causes}
    return wrapped


class InitialEvents(Sequence[bytes]):
    """Lines of the objects that a watch begins with, encoded only when they are sent: a copy of
    each would be as large as the collection. ``closing`` are the lines behind them."""

    def __init__(self, views: Views, render: EventRenderer, closing: Sequence[bytes]) -> None:
        self._views, self._render, self._closing = views, render, closing

    def __len__(self) -> int:
        return len(self._views) + len(self._closing)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        """Raises ``ApiError`` where an object cannot be read."""
        if not isinstance(index, slice):
            return self[index : index + 1][0]
        start, stop, _ = index.indices(len(self))
        many = len(self._views)
        lines = [self._render("ADDED", view) for view in self._views[start : min(stop, many)]]
        return [*lines, *self._closing[max(0, start - many) : max(0, stop - many)]]
