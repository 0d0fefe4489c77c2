"""Table of the built-in resources of kube-apiserver 1.36: names, scope, verbs, columns.

Used by ``server/registry/kinds`` and the snapshots.
"""

from __future__ import annotations

from functools import cache

import orjson

from instar.base.fast_dataclass import dataclass
from instar.kube.facts.block_file import DATA


@dataclass(frozen=True, slots=True)
class BuiltinColumn:
    """A column of the table form. ``priority`` 1 is shown in wide output only."""

    name: str
    type: str
    format: str
    priority: int


@dataclass(frozen=True, slots=True)
class BuiltinSubresource:
    """``group`` and ``version`` are those of its kind: Scale is in ``autoscaling/v1``."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResourceFacts:
    """One resource in one version."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    subresources: tuple[BuiltinSubresource, ...]
    columns: tuple[BuiltinColumn, ...]
    """Empty for kinds without a table form, such as reviews."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


_FOREIGN_VERSION = "v1"
"""The version of every subresource kind that belongs to another group."""


@cache
def resources() -> tuple[ResourceFacts, ...]:
    """Return all resources in the order a server lists them: preferred versions of a group
    first."""
    rows = orjson.loads((DATA / "resources.json").read_bytes())
    return tuple(
        ResourceFacts(
            group=group,
            version=version,
            plural=plural,
            singular=singular,
            kind=kind,
            namespaced=namespaced,
            verbs=tuple(verbs),
            short_names=tuple(short_names),
            categories=tuple(categories),
            subresources=tuple(
                BuiltinSubresource(
                    name,
                    other or group,
                    _FOREIGN_VERSION if other else version,
                    part_kind,
                    tuple(part_verbs),
                )
                for name, part_kind, other, part_verbs in parts
            ),
            columns=tuple(BuiltinColumn(*column) for column in columns),
        )
        for (
            group, version, plural, singular, kind, namespaced, verbs, short_names, categories,
            parts, columns,
        ) in rows
    )  # fmt: skip
