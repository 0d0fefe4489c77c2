"""The snapshot format: names of its parts, and the manifest that lists them. Pure.

The writer and all readers of snapshots use it. ``docs/how-to/snapshots.md`` documents it for users
of ``tar`` and ``jq``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.snapshots.errors import SnapshotError

FORMAT = "instar.dev/snapshot"
VERSION = 1

MANIFEST = "manifest.json"
CRDS = "crds.ndjson"
USAGE = "usage.json"
AUDIT = "audit.ndjson"
OBJECTS = "objects/"
OTHERS = "others/"
UNKNOWN = "unknown/"
SUFFIX = ".ndjson"


def objects_of(crd_name: str) -> str:
    """Return the name of the part with the custom resources of one CRD."""
    return f"{OBJECTS}{crd_name}{SUFFIX}"


def others_of(resource: str) -> str:
    """Return the name of the part with the objects of a built-in resource."""
    return f"{OTHERS}{resource}{SUFFIX}"


def unknown_part_name(resource: str) -> str:
    """Return the name of the part with objects of a kind that no CRD defines."""
    return f"{UNKNOWN}{resource}{SUFFIX}"


def resource_of(part: str) -> str:
    """Return ``widgets.example.com`` for ``objects/widgets.example.com.ndjson``."""
    return part.rpartition("/")[2].removesuffix(SUFFIX)


@dataclass(frozen=True)
class Row:
    """One line of the manifest: a part and its description."""

    name: str
    count: int = 0
    """Number of lines."""
    size: int = 0
    """Uncompressed size in bytes."""
    sha256: str = ""
    revision: str = ""
    """The resourceVersion of the list; of an inconsistent list, its last one."""
    consistent: bool = True
    """Whether all of it is of one revision."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """Number of objects by the version they were captured at."""
    missing: int = 0
    """Number of objects that existed and could not be read."""

    def document(self) -> Object:
        return {
            "name": self.name,
            "count": self.count,
            "bytes": self.size,
            "sha256": self.sha256,
            "resourceVersion": self.revision,
            "consistent": self.consistent,
            "versions": dict(self.versions),
            "missing": self.missing,
        }


@dataclass(frozen=True)
class Manifest:
    """First part of a snapshot: where it is from, and a row for each part."""

    origin: str
    """The source, as a command line names it, without credentials."""
    started: str
    finished: str = ""
    exact: bool = False
    """Whether objects are at their stored version, as they are in the store."""
    complete: bool = True
    """Whether everything in scope was captured."""
    parts: tuple[Row, ...] = ()
    redacted: Object = field(default_factory=dict)
    """Names of redacted fields."""
    problems: tuple[str, ...] = ()
    instar: str = ""
    version: int = VERSION

    def row(self, name: str) -> Row | None:
        return next((row for row in self.parts if row.name == name), None)

    def document(self) -> Object:
        return {
            "format": FORMAT,
            "version": self.version,
            "instar": self.instar,
            "origin": self.origin,
            "started": self.started,
            "finished": self.finished,
            "exact": self.exact,
            "complete": self.complete,
            "redacted": self.redacted,
            "problems": list(self.problems),
            "parts": [row.document() for row in self.parts],
        }


def is_manifest(document: Any) -> bool:
    return isinstance(document, dict) and document.get("format") == FORMAT


def read_manifest(document: Any, file: str) -> Manifest:
    """Read a manifest. Raises ``SnapshotError`` if it is invalid. Fields of a newer format version
    are ignored, and the caller reports that.
    """
    if not is_manifest(document):
        raise SnapshotError(f"{file}: its {MANIFEST} is not that of a snapshot")
    version = document.get("version")
    if not isinstance(version, int):
        raise SnapshotError(f"{file}: its {MANIFEST} names no version of the format")
    parts = document.get("parts")
    return Manifest(
        origin=str(document.get("origin") or file),
        started=str(document.get("started") or ""),
        finished=str(document.get("finished") or ""),
        exact=document.get("exact") is True,
        complete=document.get("complete") is True,
        parts=tuple(read_row(each) for each in parts if isinstance(each, dict))
        if isinstance(parts, list)
        else (),
        redacted=_mapping(document.get("redacted")),
        problems=tuple(str(each) for each in document.get("problems") or ()),
        instar=str(document.get("instar") or ""),
        version=version,
    )


def read_row(document: Object) -> Row:
    count, size = document.get("count"), document.get("bytes")
    versions, missing = _mapping(document.get("versions")), document.get("missing")
    return Row(
        name=str(document.get("name") or ""),
        count=count if isinstance(count, int) else 0,
        size=size if isinstance(size, int) else 0,
        sha256=str(document.get("sha256") or ""),
        revision=str(document.get("resourceVersion") or ""),
        consistent=document.get("consistent") is not False,
        versions={str(k): n for k, n in versions.items() if isinstance(n, int)},
        missing=missing if isinstance(missing, int) else 0,
    )


def _mapping(value: Any) -> Object:
    return value if isinstance(value, dict) else {}
