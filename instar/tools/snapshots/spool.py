"""Sorts objects in any order into the parts of a captured cluster, in a temporary folder.

``sources.py`` uses it for manifests, dumps and backups. The CRD of an object is known only after
all CRDs were read, so objects are first stored by group and kind.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import orjson

from instar.base.json_values import Object
from instar.base.limits import MIB
from instar.kube.api.crd import GROUP as CRD_GROUP
from instar.kube.api.names import parse_group_version
from instar.kube.facts.resources import resources
from instar.tools.snapshots.manifest import AUDIT, CRDS, objects_of, others_of, unknown_part_name
from instar.tools.snapshots.parts import SnapshotPart, part_of_file

_BUFFERED = 8 * MIB
_MOST_KINDS = 5_000
_CRD = (CRD_GROUP, "CustomResourceDefinition")
_AUDIT = ("audit.k8s.io", "Event")

Kind = tuple[str, str]


@cache
def builtin_resources() -> dict[Kind, str]:
    """Return ``plural.group`` of every built-in kind."""
    found: dict[Kind, str] = {}
    for facts in resources():
        name = f"{facts.plural}.{facts.group}" if facts.group else facts.plural
        found.setdefault((facts.group, facts.kind), name)
    return found


class Spool:
    """Collects objects by kind in a temporary folder."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="instar-world-"))
        self._waiting: dict[Kind, list[bytes]] = {}
        self._files: dict[Kind, Path] = {}
        self._counts: Counter[Kind] = Counter()
        self._size = 0
        self.foreign = 0
        """Number of documents that are not Kubernetes objects."""

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, obj: Object) -> None:
        kind = _kind(obj)
        if kind is None or (kind not in self._files and len(self._files) >= _MOST_KINDS):
            self.foreign += 1
            return
        self._files.setdefault(kind, self._folder / str(len(self._files)))
        try:
            line = orjson.dumps(obj, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError:  # an integer that JSON readers refuse
            self.foreign += 1
            return
        self._waiting.setdefault(kind, []).append(line)
        self._counts[kind] += 1
        self._size += len(line)
        if self._size > _BUFFERED:
            self._flush()

    def parts(self) -> Iterator[SnapshotPart]:
        self._flush()
        named = {_CRD: CRDS, _AUDIT: AUDIT}
        named |= {kind: others_of(name) for kind, name in builtin_resources().items()}
        named[_CRD] = CRDS
        named |= {kind: objects_of(name) for kind, name in self._defined()}
        for kind, path in self._files.items():
            group, word = kind
            name = named.get(kind) or unknown_part_name(f"{word}.{group}" if group else word)
            if self._counts[kind]:
                yield part_of_file(name, path, self._counts[kind])

    def _defined(self) -> Iterator[tuple[Kind, str]]:
        path = self._files.get(_CRD)
        if path is None:
            return
        for crd in part_of_file(CRDS, path, 0).objects():
            spec, metadata = crd.get("spec"), crd.get("metadata")
            names = spec.get("names") if isinstance(spec, dict) else None
            if isinstance(spec, dict) and isinstance(names, dict) and isinstance(metadata, dict):
                yield (str(spec.get("group")), str(names.get("kind"))), str(metadata.get("name"))

    def _flush(self) -> None:
        for kind, lines in self._waiting.items():
            with self._files[kind].open("ab") as file:
                file.writelines(lines)
        self._waiting, self._size = {}, 0


def _kind(obj: Object) -> Kind | None:
    """Return the group and kind; None if the kind is missing or not a valid name."""
    version, kind, metadata = obj.get("apiVersion"), obj.get("kind"), obj.get("metadata")
    if not isinstance(version, str) or not isinstance(kind, str):
        return None
    group = parse_group_version(version).group if version.count("/") <= 1 else ""
    fit = kind.isascii() and kind.isalnum() and len(kind) <= 63
    fit = fit and group.replace(".", "").replace("-", "").isalnum() if group else fit
    if (group, kind) != _AUDIT and not isinstance(metadata, dict):
        return None
    return (group, kind) if fit else None
