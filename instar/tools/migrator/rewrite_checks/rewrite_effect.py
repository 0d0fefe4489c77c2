"""Computes what a rewrite does to an object before anything is written. Pure.

Called by ``rewrite_checker.py`` for every object of a page, and by ``change_scan.py`` for the CRD
of a release (``instar upgrade``). Works on readings (the object as the API returns it at each
served version) and on the CRD's schemas, in the order of pruning and defaulting of
``kube/schema/pipeline.py``.

With conversion strategy None everything is computed here: a server prunes and defaults by the
version it reads, sets ``apiVersion`` and prunes by the other version. With a webhook only the
defaults of the version that is written are computed here; dry runs try the conversions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, copy_json
from instar.kube.api.crd import Crd
from instar.kube.schema.pipeline import SchemaPipeline, pipeline_of
from instar.tools.migrator.content_diff import FieldDifference, content_of, differences, is_covered


class ChangeCause(StrEnum):
    """The cause of a change when an object is written back unchanged."""

    PRUNED = "pruned"
    DEFAULTED = "defaulted"
    CONVERTED = "converted"
    ADMITTED = "admitted"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that a version shows differently after a rewrite."""

    version: str
    difference: FieldDifference
    cause: ChangeCause

    @property
    def field(self) -> str:
        return self.difference.field

    def __str__(self) -> str:
        return f"{self.difference} at {self.version}"


class RewriteEffect:
    """The CRD's schemas, compiled once for all objects."""

    def __init__(self, crd: Crd, write_version: str) -> None:
        self._crd = crd
        self._written = write_version
        self._storage = crd.storage_version()
        self._pipelines: dict[str, SchemaPipeline] = {}

    @property
    def is_computed(self) -> bool:
        """Return whether the effect at every version follows from the schemas alone."""
        return self._crd.conversion.strategy == "None"

    def of(self, readings: Mapping[str, Object]) -> list[FieldChange]:
        """Return the changes that a no-op write would make, as far as they can be computed.

        ``readings`` holds the object at every version to compare. Raises ``MetaError`` when the
        schema's steps cannot decode the object.
        """
        reading = readings.get(self._written)
        if reading is None:
            return []
        if not self.is_computed:
            compared: Mapping[str, Object] = {self._written: self._decoded(reading)}
        else:
            compared = self.readings_after(reading, readings)
        return [
            FieldChange(version, difference, _computed_cause(difference))
            for version, after in compared.items()
            for difference in differences(readings[version], after)
        ]

    def readings_after(self, reading: Object, versions: Iterable[str]) -> dict[str, Object]:
        """Return the object as each version shows it after ``reading``, an object at the written
        version, was stored under conversion strategy None.
        """
        obj = self._decoded(reading)
        if self._storage != self._written:
            self._convert(obj, self._storage)
        self._pipeline(self._storage).from_storage(obj)
        shown = {}
        for version in versions:
            shown[version] = copy_json(obj)
            if version != self._storage:
                self._convert(shown[version], version)
        return shown

    def _decoded(self, reading: Object) -> Object:
        obj: Object = copy_json(content_of(reading))
        self._pipeline(self._written).decode(obj)
        return obj

    def _convert(self, obj: Object, version: str) -> None:
        obj["apiVersion"] = f"{self._crd.group}/{version}"
        self._pipeline(version).after_conversion(obj)

    def _pipeline(self, name: str) -> SchemaPipeline:
        if name not in self._pipelines:
            version = self._crd.version(name)
            assert version is not None
            self._pipelines[name] = pipeline_of(self._crd, version)
        return self._pipelines[name]


def _computed_cause(difference: FieldDifference) -> ChangeCause:
    return ChangeCause.PRUNED if difference.is_loss else ChangeCause.DEFAULTED


def not_accepted(changes: Iterable[FieldChange], accepted: Collection[str]) -> list[FieldChange]:
    """Return the changes whose path the user did not accept."""
    return [
        change for change in changes if not any(is_covered(change.field, path) for path in accepted)
    ]


def explain(cause: ChangeCause, version: str, storage: str) -> str:
    """Return the text of a cause, for a report."""
    match cause:
        case ChangeCause.PRUNED:
            return f"conversion None keeps only fields that {storage}'s schema has"
        case ChangeCause.DEFAULTED:
            return f"a default of {storage}'s schema"
        case ChangeCause.CONVERTED:
            return f"the conversion from {version} to {storage} and back"
        case ChangeCause.ADMITTED:
            return "a mutating admission webhook or policy, or the conversion"


def fields_only_in(
    wide: Mapping[str, Any] | None, narrow: Mapping[str, Any] | None, path: str = ""
) -> Iterator[str]:
    """Yield the fields that a schema has and another one would prune.

    Both are ``openAPIV3Schema`` objects as the CRD holds them.
    """
    wide, narrow = wide or {}, narrow or {}
    if _keeps_unknown(narrow):
        return
    if _keeps_unknown(wide):
        yield f"{path}.*".lstrip(".")
        return
    if wide.get("items"):
        yield from fields_only_in(wide["items"], narrow.get("items"), f"{path}[]")
        return
    known, rest = narrow.get("properties") or {}, narrow.get("additionalProperties")
    for name, schema in (wide.get("properties") or {}).items():
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        below = f"{path}.{name}".lstrip(".")
        if name in known:
            yield from fields_only_in(schema, known[name], below)
        elif isinstance(rest, dict):
            yield from fields_only_in(schema, rest, below)
        elif not rest:
            yield below
    if wide.get("additionalProperties") and not rest:
        yield f"{path}.*".lstrip(".")


def _keeps_unknown(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("x-kubernetes-preserve-unknown-fields"))


def unaccepted_fields(names: Iterable[str], accepted: Collection[str]) -> list[str]:
    """Return the fields that were not accepted."""
    return [name for name in names if not any(is_covered(name, path) for path in accepted)]
