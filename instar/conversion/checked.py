"""What holds for every strategy: conversion only happens between versions the CRD lists.

Upstream asks this before it looks at the strategy, and whether a version is served does not
matter. An object stored at a version that has left the CRD is found here.
"""

from __future__ import annotations

from collections.abc import Sequence

from instar.api.crd import Crd
from instar.conversion.converter import Converter
from instar.conversion.failure import Attempt, ConversionFailed, FailureType
from instar.plain import Object


class CheckedConverter:
    """A ``Converter`` around a ``Converter``: both ends must be versions of the CRD."""

    def __init__(self, crd: Crd, inner: Converter) -> None:
        self._crd = crd
        self._inner = inner
        self._known = frozenset(f"{crd.group}/{version.name}" for version in crd.versions)

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        if api_version not in self._known:
            raise self._refused(objects, api_version, f"to an invalid group/version: {api_version}")
        for obj in objects:
            source = obj.get("apiVersion", "")
            if source not in self._known:
                raise self._refused([obj], api_version, f"from an invalid group/version: {source}")
        return await self._inner.convert(objects, api_version)

    def _refused(
        self, objects: Sequence[Object], api_version: str, problem: str
    ) -> ConversionFailed:
        listed = ", ".join(version.name for version in self._crd.versions)
        return Attempt(self._crd, api_version, objects).failed(
            f"request to convert CR {problem}",
            FailureType.NONE,
            f"the CRD lists only these versions: {listed}",
            advice="put the missing version back into spec.versions (served: false is enough) "
            "and migrate the stored objects before it is removed",
        )
