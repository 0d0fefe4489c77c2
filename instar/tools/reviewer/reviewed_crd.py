"""A CRD under review (``apiextensions.k8s.io/v1`` or ``v1beta1``), converted to v1, with defaults
and normalised schemas.

``reviewing.py`` reads both CRDs of a review with it. The rules, the search for example objects
(``witnesses/``) and the simulated server (``server_model.py``) work on it. Schemas are normalised,
so that a difference between two of them is a difference in behaviour. Schemas are compiled on
demand, and the compiled schemas are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, Pointer, copy_json
from instar.kube.api.crd import Crd, CrdVersion
from instar.kube.api.crd_codec import to_internal
from instar.kube.crds.defaults import with_defaults
from instar.kube.crds.documents import read_definition
from instar.kube.schema.pipeline import SchemaPipeline, pipeline_of
from instar.kube.schema.rule_engine import RuleCompiler
from instar.tools.reviewer.normal_form import normalise


@dataclass(frozen=True)
class ReviewedCrd:
    """A CRD under review."""

    given: Object
    """The CRD as written and as a server decodes it, without unknown fields."""
    raw: Object
    """The v1 form with defaults."""
    crd: Crd
    knows_status: bool
    """Whether ``storedVersions`` was read from a cluster or is only assumed."""
    unknown: tuple[str, ...] = ()
    """Paths that a server drops when it decodes the CRD."""

    @property
    def name(self) -> str:
        return self.crd.name

    @cached_property
    def internal(self) -> Object:
        return to_internal(with_defaults(copy_json(self.given)))

    @cached_property
    def schemas(self) -> Mapping[str, Object]:
        """Return the normalised openAPIV3Schema by version; an absent schema is the empty one."""
        return {item.name: normalise(item.schema or {}) for item in self.crd.versions}

    @cached_property
    def _pipelines(self) -> dict[tuple[str, RuleCompiler], SchemaPipeline]:
        return {}

    def pipeline(self, version: str, compile_rules: RuleCompiler) -> SchemaPipeline:
        """Return the pipeline for objects of a version; a version that the CRD lacks has no
        fields.
        """
        key = (version, compile_rules)
        if key not in self._pipelines:
            found = self.crd.version(version) or CrdVersion(version, served=False, storage=False)
            self._pipelines[key] = pipeline_of(self.crd, found, compile_rules)
        return self._pipelines[key]

    def index(self, version: str) -> int:
        names = [item.name for item in self.crd.versions]
        return names.index(version) if version in names else 0

    def version_pointer(self, version: str, *more: str | int) -> Pointer:
        return ("spec", "versions", self.index(version), *more)

    def schema_pointer(self, version: str, steps: tuple[str, ...] = ()) -> Pointer:
        return self.version_pointer(version, "schema", "openAPIV3Schema", *steps)


def read_reviewed_crd(given: Mapping[str, Any]) -> ReviewedCrd:
    """Read a v1 or v1beta1 CRD from JSON, which is not changed. Raises ``CrdDecodeError`` if a
    server could not decode it.
    """
    found = read_definition(given)
    known = bool((found.given.get("status") or {}).get("storedVersions"))
    return ReviewedCrd(
        given=found.given,
        raw=found.raw,
        crd=found.crd,
        knows_status=known,
        unknown=found.unknown,
    )
