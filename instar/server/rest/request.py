"""URL, method and query → what is asked of which resource. No rule about objects lives here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qs, unquote

from instar.base import limits
from instar.base.errors import BadRequest, RequestTooLarge
from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import go_quote
from instar.kube.access.attributes import OURSELVES, Attributes, User
from instar.kube.api.selectors import parse_field_selector

if TYPE_CHECKING:
    from instar.server.audit.request_record import Trail

MAX_BODY = limits.MAX_BODY
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")
_VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


class Cancellable(Protocol):
    """Work under way: a task, or what goes on without one."""

    def cancel(self) -> object: ...


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """A resource URL taken apart."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch_prefix: bool = False
    """The deprecated ``/watch/`` form."""


@dataclass(slots=True)
class Request:
    """One HTTP request; ``headers`` are lower-case bytes."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[bytes, bytes]
    body: bytes = b""
    too_large: bool = False
    """The body was over the limit and has been thrown away."""
    repeated: Sequence[tuple[bytes, bytes]] = ()
    """Headers that came more than once: all but the first of each."""
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    """What admission has to say to the audit log."""
    asked: Attributes = OURSELVES
    """Who asks for what, as soon as that is known."""
    uri: bytes = b""
    """What was asked for, as it was written."""
    remote: str = ""
    """The address of whoever asks."""
    trail: Trail | None = None
    """What the audit log is told, where there is one."""
    patience: float = 60.0
    """Seconds the answer may take; 0 is for ever."""
    began: float = 0.0
    """When it came, by ``perf_counter``."""
    writes: bool = False
    """Whether one object is to be written: then lateness is told in other words."""
    requester: User | None = None
    """Who asks, where ``asked`` is of somebody they act as."""
    constraint: str = ""
    """By which right they do, as an audit log tells it."""
    refused_because: str = ""
    """Why a credential was no good, for those who keep records: the client is not told."""
    expired: bool = False
    """The time is up: whoever works on the answer has been cancelled."""

    def content(self) -> bytes:
        """The body, once a verb has come to reading it."""
        if self.too_large:
            raise RequestTooLarge(f"limit is {MAX_BODY}")
        return self.body

    def all_of(self, name: bytes) -> list[str]:
        """Every value of a header, in their order."""
        first = self.headers.get(name)
        if first is None:
            return []
        more = (value for header, value in self.repeated if header == name)
        return [value.decode("utf-8", "replace") for value in (first, *more)]

    def begin_with(self, prefix: bytes) -> dict[bytes, list[str]]:
        """Headers whose names begin so, by the rest of the name; every value of each."""
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
        """Upstream's query booleans: only ``false`` and ``0`` are false; None when absent."""
        values = self.query.get(name)
        return None if values is None else values[0].lower() not in ("false", "0")

    def integer(self, name: str) -> int:
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
        """Until it must be answered; never quite none, for whoever is cancelled then anyway."""
        if not self.patience:
            return inf
        return max(self.began + self.patience - perf_counter(), 0.001)

    def expire(self, work: Cancellable) -> None:
        """The handler turns the cancellation into an answer."""
        self.expired = True
        work.cancel()

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def annotate(self, key: str, value: str) -> None:
        """The first word on a key counts."""
        self.annotations.setdefault(key, value)


def parse_query(raw: bytes) -> dict[str, list[str]]:
    if not raw:
        return {}
    return parse_qs(raw.decode("latin-1"), keep_blank_values=True, encoding="utf-8")


def parse_resource_path(path: str) -> ResourcePath | None:
    """``/api/v1/…`` or ``/apis/G/V/…``; None for anything that names no resource."""
    parts = [unquote(part) for part in path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    watch_prefix = rest[0] == "watch" and len(rest) > 1
    if watch_prefix:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not _is_namespace_part(group, rest):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest[:3], "", "", "")[:3]
    return ResourcePath(group, version, plural, namespace, name, subresource, watch_prefix)


def _is_namespace_part(group: str, rest: list[str]) -> bool:
    """``namespaces/x/status`` and ``/finalize`` are the namespace's own subresources."""
    return not group and len(rest) == 3 and rest[2] in ("status", "finalize")


def attributes_of(request: Request, path: ResourcePath | None, user: User) -> Attributes:
    """The request as everybody who judges or counts it sees it."""
    if path is None:
        return Attributes(user, request.method.lower(), path=request.path)
    verb, name, namespace = verb_of(request, path), path.name, path.namespace
    if not name and request.query and verb in ("list", "watch"):
        name = _selected_name(request)
    if path.plural == "namespaces" and path.name and not namespace:
        namespace = path.name
    return Attributes(
        user,
        verb,
        path.group,
        path.version,
        path.plural,
        path.subresource,
        namespace,
        name,
        request.path,
    )


def _selected_name(request: Request) -> str:
    """A list of the one object of a name is about that name: rules may allow it by name."""
    text = request.one("fieldSelector")
    if not text:
        return ""
    try:
        selector = parse_field_selector(text)
    except BadRequest:
        return ""  # told when the list is made
    name = (selector.exact("metadata.name") if selector is not None else None) or ""
    return "" if name in (".", "..") or "/" in name or "%" in name else name


def verb_of(request: Request, path: ResourcePath) -> str:
    """get, list, watch, create, update, patch, delete, deletecollection, or empty."""
    verb = _VERBS.get(request.method, "")
    if path.watch_prefix and verb == "get":
        return "watch"
    if path.name or path.subresource:
        return verb
    if verb == "get":
        return "watch" if request.flag("watch") else "list"
    return "deletecollection" if verb == "delete" else verb
