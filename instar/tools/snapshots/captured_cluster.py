"""A captured cluster as streams of CRDs, objects, audit events and usage.

``rehearse``, ``serve --from``, ``snapshot`` and ``restore`` read it. The interface is the same for
a snapshot, a folder of manifests, a dump, a backup or a live cluster; ``sources.py`` opens each of
them as a ``CapturedCluster``. Unreadable parts are reported once in ``problems`` and counted as
unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from types import TracebackType
from typing import Self

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.api.crd import is_crd
from instar.kube.api.crd_codec import CrdDecodeError
from instar.kube.crds.documents import read_definition
from instar.tools.snapshots.errors import SnapshotError
from instar.tools.snapshots.inflate import TruncatedGzip
from instar.tools.snapshots.manifest import (
    AUDIT,
    CRDS,
    OBJECTS,
    OTHERS,
    UNKNOWN,
    USAGE,
    objects_of,
    resource_of,
)
from instar.tools.snapshots.parts import SnapshotPart, small_document


@dataclass(frozen=True)
class RecordedUse:
    """Requests of one client: a line of ``/instar/usage``, or a sum over audit events."""

    group: str
    resource: str
    version: str
    verb: str
    user: str
    agent: str
    number: int = 0
    first: str = ""
    """Time of the first request, RFC 3339."""
    last: str = ""

    def document(self) -> Object:
        return {
            "group": self.group,
            "resource": self.resource,
            "version": self.version,
            "verb": self.verb,
            "user": self.user,
            "userAgent": self.agent,
            "count": self.number,
            "first": self.first,
            "last": self.last,
        }


@dataclass(frozen=True)
class Counts:
    """Numbers of objects, usable and unusable."""

    crds: int = 0
    objects: Mapping[str, int] = field(default_factory=dict)
    """Number of custom resources by CRD name."""
    others: Mapping[str, int] = field(default_factory=dict)
    """Number of objects of built-in kinds by ``plural.group``."""
    unknown: Mapping[str, int] = field(default_factory=dict)
    """Number of objects of kinds that no CRD defines, by kind or resource."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Number of objects that the manifest lists and that are absent or unreadable, by part."""

    @property
    def total(self) -> int:
        """Return the number of custom resources that can be checked."""
        return sum(self.objects.values())

    @property
    def unjudged(self) -> int:
        """Return the number of objects that cannot be checked; they never count as valid."""
        return sum(self.unknown.values()) + sum(self.missing.values())


class CapturedCluster:
    """A captured cluster. Close it, or use ``with open_captured_cluster(…) as cluster``, because it
    may use a temporary folder.
    """

    def __init__(
        self,
        origin: str,
        parts: Iterable[SnapshotPart],
        *,
        problems: Iterable[str] = (),
        exact: bool = False,
        taken: str = "",
        uses: Iterable[RecordedUse] | None = None,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        self.origin = origin
        self.exact = exact
        """Whether each object is at its stored version, as it is in the store."""
        self.taken = taken
        """Time of the capture, RFC 3339; empty if unknown."""
        self.problems: list[str] = list(dict.fromkeys(problems))
        self._parts = {part.name: part for part in parts}
        self._uses = None if uses is None else list(uses)
        self._closing = closing
        self._since = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._closing()

    def crd_names(self) -> list[str]:
        """Return the names of CRDs, including those of which only objects were captured."""
        named = [resource_of(name) for name in self._parts if name.startswith(OBJECTS)]
        defined = [crd["metadata"]["name"] for crd in self.crds()]
        return list(dict.fromkeys([*defined, *named]))

    def crds(self) -> Iterator[Object]:
        """Return the CRDs in v1 form, each name once; documents that are not CRDs are reported."""
        seen: set[str] = set()
        for given in self._read(CRDS):
            name = str((given.get("metadata") or {}).get("name") or "")
            try:
                definition = read_definition(given) if is_crd(given) else None
            except (CrdDecodeError, KeyError, TypeError, ValueError) as error:
                self.note_problem(
                    f"CRD {name}: {' '.join(str(error).split())}; its objects are unknown"
                )
                continue
            if definition is None or not name:
                self.note_problem(f"{CRDS}: a {given.get('kind')} is no CRD")
            elif name in seen:
                self.note_problem(f"CRD {name} is there twice; the first counts")
            else:
                seen.add(name)
                yield {**definition.raw, "metadata": given["metadata"]}

    def objects(self, crd_name: str) -> Iterator[Object]:
        """Yield each object at the version at which it was captured (its ``apiVersion``)."""
        yield from self._read(objects_of(crd_name))

    def other_objects(self) -> Iterator[Object]:
        """Yield objects of built-in kinds: namespaces, webhook configurations, policies, RBAC, …"""
        yield from self._read_all(OTHERS)

    def unknown(self) -> Iterator[Object]:
        """Yield objects of kinds that no captured CRD defines."""
        yield from self._read_all(UNKNOWN)

    def audit(self) -> Iterator[Object]:
        """Yield ``audit.k8s.io/v1`` events, in the order of the log."""
        yield from self._read(AUDIT)

    def usage(self) -> list[RecordedUse]:
        """Return the usage that the server counted, else the sum over the audit events."""
        if self._uses is None:
            self._uses = self._read_usage()
        return list(self._uses)

    def usage_document(self) -> Object | None:
        """Return usage in the form of ``/instar/usage``; None if it was not counted."""
        uses = self.usage()
        since = self._since or min((use.first for use in uses), default="")
        return {"since": since, "uses": [use.document() for use in uses]} if since else None

    def counts(self) -> Counts:
        """Count the objects without reading them."""
        rows = {name: part.count for name, part in self._parts.items()}
        return Counts(
            crds=rows.get(CRDS, 0),
            objects=_below(rows, OBJECTS),
            others=_below(rows, OTHERS),
            unknown=_below(rows, UNKNOWN),
            missing={part.name: part.missing for part in self._parts.values() if part.missing},
        )

    def note_problem(self, problem: str) -> None:
        """Record a problem; each text only once."""
        if problem not in self.problems:
            self.problems.append(problem)

    def _read_all(self, folder: str) -> Iterator[Object]:
        for name in list(self._parts):
            if name.startswith(folder):
                yield from self._read(name)

    def _read(self, name: str) -> Iterator[Object]:
        part = self._parts.get(name)
        if part is None:
            return
        yield from part.objects()
        if part.trouble:
            self.note_problem(f"{name}: {part.trouble}")
        if part.bad:
            part.missing = max(part.missing, part.bad)
            self.note_problem(
                f"{name}: {part.bad} of its lines are no objects, or longer than allowed"
            )

    def _read_usage(self) -> list[RecordedUse]:
        part = self._parts.get(USAGE)
        if part is None:
            summed, left_out = _summed(self.audit())
            if left_out:
                self.note_problem(f"audit: of callers beyond {_MOST_USES:,} nothing is known")
            return summed
        try:
            with part.open() as stream:
                document = small_document(stream, USAGE)
        except (TruncatedGzip, OSError, SnapshotError) as error:
            self.note_problem(f"{USAGE} is not readable: {error}")
            return []
        uses = document.get("uses") if isinstance(document, dict) else None
        self._since = str(document.get("since") or "") if isinstance(document, dict) else ""
        found = [_use(each) for each in uses or () if isinstance(each, dict)]
        return [use for use in found if use is not None]


def _below(rows: Mapping[str, int], folder: str) -> dict[str, int]:
    return {resource_of(name): count for name, count in rows.items() if name.startswith(folder)}


def _use(document: Object) -> RecordedUse | None:
    count = document.get("count")
    if not isinstance(count, int):
        return None

    def text(name: str) -> str:
        return str(document.get(name) or "")

    return RecordedUse(
        group=text("group"),
        resource=text("resource"),
        version=text("version"),
        verb=text("verb"),
        user=text("user"),
        agent=text("userAgent"),
        number=count,
        first=text("first"),
        last=text("last"),
    )


_FINAL_STAGES = frozenset({"ResponseComplete", "ResponseStarted", "Panic"})
_MOST_USES = 20_000
"""Most lines of usage that are kept, so that clients with ever new names cannot fill the memory."""


def _summed(events: Iterable[Object]) -> tuple[list[RecordedUse], bool]:
    """Sum up audit events by client; return also whether any client was omitted."""
    found: dict[RecordedUse, RecordedUse] = {}
    left_out = False
    for event in events:
        caller = _caller(event)
        if caller is None:
            continue
        if caller not in found and len(found) >= _MOST_USES:
            left_out = True
            continue
        when = str(event.get("requestReceivedTimestamp") or event.get("stageTimestamp") or "")
        seen = found.get(caller) or replace(caller, first=when, last=when)
        found[caller] = replace(
            seen, number=seen.number + 1, first=min(seen.first, when), last=max(seen.last, when)
        )
    return list(found.values()), left_out


def _caller(event: Object) -> RecordedUse | None:
    """Return the impersonated user of an event, because that is the client that needs the
    version.
    """
    about = event.get("objectRef")
    if not isinstance(about, dict) or event.get("stage") not in _FINAL_STAGES:
        return None
    user = event.get("impersonatedUser") or event.get("user")
    return RecordedUse(
        group=str(about.get("apiGroup") or ""),
        resource=str(about.get("resource") or ""),
        version=str(about.get("apiVersion") or ""),
        verb=str(event.get("verb") or ""),
        user=str(user.get("username") or "") if isinstance(user, dict) else "",
        agent=str(event.get("userAgent") or ""),
    )
