"""HTTP messages: a request as a connection reads it, a response as a connection sends it, streams.

``http1.py`` makes requests and writes responses; every handler of the server and of the console
takes one and returns the other. The handlers interpret paths (``rest/request_attributes.py``) and
bodies (``rest/bodies.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from math import inf
from time import perf_counter
from typing import Any, Protocol
from urllib.parse import parse_qs

from instar.base import limits
from instar.base.errors import BadRequest, RequestTooLarge
from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import go_quote
from instar.kube.access.attributes import OURSELVES, Attributes, User
from instar.server.http.body_stream import BodyStream

Header = tuple[bytes, bytes]
JSON_TYPE: Header = (b"content-type", b"application/json")
TEXT_TYPE: Header = (b"content-type", b"text/plain; charset=utf-8")
MAX_BODY = limits.MAX_BODY
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")


class Cancellable(Protocol):
    """A running handler: a task, or a coroutine that runs without one."""

    def cancel(self) -> object: ...


@dataclass(slots=True)
class Request:
    """One HTTP request; ``headers`` are lower-case bytes."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[bytes, bytes]
    body: bytes = b""
    too_large: bool = False
    """The body exceeded the limit and was thrown away."""
    repeated: Sequence[tuple[bytes, bytes]] = ()
    """Headers that were sent more than once: all but the first of each."""
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations for the audit log, by admission and authorization."""
    asked: Attributes = OURSELVES
    """User, verb and resource, once the request is authenticated."""
    uri: bytes = b""
    """The request target as the client wrote it."""
    remote: str = ""
    """The client's address."""
    trail: Any = None
    """What the audit log records of it (``server/audit``); None where there is no audit log."""
    patience: float = 60.0
    """Seconds the response may take; 0 is no limit."""
    began: float = 0.0
    """When it arrived, by ``perf_counter``."""
    writes: bool = False
    """Whether it writes one object: then a timeout has another message."""
    requester: User | None = None
    """The authenticated user, where ``asked`` has the impersonated one."""
    constraint: str = ""
    """The permission that allowed the impersonation, for the audit log."""
    flow_headers: tuple[Header, ...] = ()
    """Headers with the uids of its FlowSchema and priority level, once these are known."""
    refused_because: str = ""
    """Why a credential was rejected, for the audit log only: the client does not see it."""
    expired: bool = False
    """Whether the deadline has passed and the handler was cancelled."""
    cbor: bool = False
    """Whether the server reads and writes CBOR."""
    incoming: BodyStream | None = None
    """The body, where it is streamed: ``body`` is then empty."""

    def content(self) -> bytes:
        """Return the body. Raises ``RequestTooLarge`` only here, so that a verb can refuse
        earlier."""
        if self.too_large:
            raise RequestTooLarge(f"limit is {MAX_BODY}")
        return self.body

    def all_of(self, name: bytes) -> list[str]:
        """Every value of a header, in the order in which they were sent."""
        first = self.headers.get(name)
        if first is None:
            return []
        more = (value for header, value in self.repeated if header == name)
        return [value.decode("utf-8", "replace") for value in (first, *more)]

    def begin_with(self, prefix: bytes) -> dict[bytes, list[str]]:
        """Values of all headers with this prefix, by the rest of the name."""
        found: dict[bytes, list[str]] = {}
        for name, value in (*self.headers.items(), *self.repeated):
            if name.startswith(prefix):
                found.setdefault(name[len(prefix) :], []).append(value.decode("utf-8", "replace"))
        return found

    def header(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1")

    def one(self, name: str) -> str:
        """A query parameter's first value, empty when absent."""
        values = self.query.get(name)
        return values[0] if values else ""

    def flag(self, name: str) -> bool | None:
        """Parse a query boolean as upstream: only ``false`` and ``0`` are false; None when
        absent."""
        values = self.query.get(name)
        return None if values is None else values[0].lower() not in ("false", "0")

    def integer(self, name: str) -> int:
        """A query parameter as a 64-bit number, 0 when absent or empty."""
        if name not in self.query:
            return 0
        text = self.one(name)
        if not text:
            return 0
        if _INTEGER.fullmatch(text) is None:
            raise BadRequest(f"strconv.ParseInt: parsing {go_quote(text)}: invalid syntax")
        value = int(text)
        if not -(2**63) <= value < 2**63:
            raise BadRequest(f'strconv.ParseInt: parsing "{text}": value out of range')
        return value

    def seconds_left(self) -> float:
        """Seconds until the deadline; a millisecond once it has passed, as 0 is no limit."""
        if not self.patience:
            return inf
        return max(self.began + self.patience - perf_counter(), 0.001)

    def expire(self, work: Cancellable) -> None:
        """Cancel the handler, which turns that into a response."""
        self.expired = True
        work.cancel()

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def annotate(self, key: str, value: str) -> None:
        """Add an audit annotation; the first value of a key is kept."""
        self.annotations.setdefault(key, value)


def parse_query(raw: bytes) -> dict[str, list[str]]:
    if not raw:
        return {}
    return parse_qs(raw.decode("latin-1"), keep_blank_values=True, encoding="utf-8")


class Outlet(Protocol):
    """The connection that a stream writes to."""

    def send(self, data: bytes) -> bool:
        """Send data. Returns False when the client is slow; ``backlog`` is then not 0."""
        ...

    def backlog(self) -> int:
        """Bytes that are not sent yet."""
        ...

    def finish(self) -> None:
        """End the stream."""
        ...

    def abort(self) -> None: ...


class Feed(Protocol):
    """A response without a fixed end, such as a watch: opened once, it sends when it has data."""

    def open(self, outlet: Outlet) -> None: ...

    def resume(self) -> None:
        """The client has read enough of the backlog."""
        ...

    def close(self) -> None:
        """The client has disconnected; also called after ``finish``."""
        ...


@dataclass(slots=True)
class Response:
    """One HTTP response: chunks of known length, or a stream."""

    status: int
    chunks: Iterable[bytes] = ()
    headers: list[Header] = field(default_factory=list)
    stream: Feed | None = None
    length: int = -1
    """Bytes of all chunks; given where the chunks are made while they are sent."""
    bare: bool = False
    """Whether the headers of every response are left out: it has its own ``Cache-Control``."""
    held: int = -1
    """Bytes held in memory until it is sent; all of them unless given."""
    raw: bool = False
    """Whether the stream's bytes are sent as they are: ``headers`` tell where they end."""

    def __post_init__(self) -> None:
        if self.length < 0:
            self.length = sum(map(len, self.chunks))
        if self.held < 0:
            self.held = self.length

    def pieces(self, size: int) -> Iterator[bytes]:
        """The chunks in pieces of about this size, so that a large response is never held whole."""
        for chunk in self.chunks:
            if len(chunk) <= 2 * size:
                yield chunk
            else:
                for begin in range(0, len(chunk), size):
                    yield chunk[begin : begin + size]


def text_response(status: int, text: str) -> Response:
    return Response(status, (text.encode(),), [TEXT_TYPE])
