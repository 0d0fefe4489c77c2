"""Checks every served version after a step, unless nothing that the result depends on has changed.

``batch.py`` calls it after each step; ``version_probe.py`` does the requests.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import orjson

from instar.tools.migrator.ownership import versions_named
from instar.tools.rehearsal.converting import ConversionMode
from instar.tools.rehearsal.model import DamageFact
from instar.tools.rehearsal.sandbox import Sandbox
from instar.tools.rehearsal.version_findings import BEFORE, ReferenceReadings, VersionFindings
from instar.tools.rehearsal.version_probe import VersionProbe
from instar.tools.reviewer.report import Damage


class StepInputs(NamedTuple):
    """The inputs of the checks of a version; its findings are valid until one of them changes."""

    contents: int
    """Number of rewrites of all objects."""
    lying: str
    """Schemas of all stored versions, which readings are made from."""
    writing: str
    """The version, the storage version, and the converter between them."""
    creating: str
    """What a new object is validated by."""


class StepChecker:
    """Reads and writes each object at each version after a step, and compares with before."""

    def __init__(self, stage: Sandbox, reference: ReferenceReadings, rewritten: int = 0) -> None:
        self._stage = stage
        self._reference = reference
        self.rewritten = rewritten
        """Number of migrations: earlier readings tell nothing about objects rewritten since."""
        self._known: dict[str, tuple[StepInputs, VersionFindings]] = {}
        self._creating = {
            version: _inputs(reference.stage, version, 0).creating
            for version in reference.stage.crd.served()
        }
        if stage.conversion is not ConversionMode.ABSENT:
            # a version for which nothing changed keeps its findings
            for version in reference.stage.crd.served():
                known = VersionFindings(version, len(stage.keys), since=BEFORE)
                known.warnings = reference.warnings.get(version, ())
                self._known[version] = (_inputs(reference.stage, version, rewritten), known)

    async def check_step(self, step: str) -> dict[str, VersionFindings]:
        found = {}
        for version in self._stage.crd.served():
            inputs = _inputs(self._stage, version, self.rewritten)
            known = self._known.get(version)
            if known is not None and known[0] == inputs:
                found[version] = known[1]
                continue
            holds = known[1] if known is not None and known[0].writing == inputs.writing else None
            creates = self._creating.get(version) != inputs.creating
            look = VersionProbe(self._stage, self._reference, version, step, holds, creates=creates)
            found[version] = await look.run()
            self._known[version] = (inputs, found[version])
        bereft = await self._count_lost_owners()
        if bereft:
            first = next(iter(found))
            found[first] = replace(found[first], writes=[*found[first].writes, *bereft])
        return found

    async def _count_lost_owners(self) -> list[DamageFact]:
        """Count objects whose managedFields name a version that this release removed. An instar
        server drops only those entries; kube-apiserver drops all entries.
        """
        crd = self._stage.crd
        known = {version.name for version in crd.versions}
        gone = {version.name for version in self._reference.stage.crd.versions} - known
        served = crd.served()
        if not gone or not served:
            return []
        harms = []
        async for listed in self._stage.pages(served[0]):
            for reading in listed.readings:
                named = versions_named(reading.obj, crd.group) if reading.obj is not None else set()
                for version in sorted(named & gone):
                    text = (
                        f"managedFields name {version}, which is gone: with the next write a "
                        "kube-apiserver drops every owner of every field"
                    )
                    harms.append(DamageFact(reading.key, served[0], Damage.OWNERSHIP_LOST, text))
        return harms


def _inputs(stage: Sandbox, version: str, rewritten: int) -> StepInputs:
    spec, crd = stage.document["spec"], stage.crd
    by_name = {item["name"]: item for item in spec["versions"]}
    schemas = {name: item.get("schema") for name, item in by_name.items()}
    storage = crd.storage_version()
    lying = {name: schemas.get(name) for name in crd.stored_versions}
    deprecated = by_name[version].get("deprecated")
    writing = [schemas[version], storage, schemas[storage], spec.get("conversion"), deprecated]
    return StepInputs(rewritten, _text(lying), _text(writing), _text(schemas[version]))


def _text(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
