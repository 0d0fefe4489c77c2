"""Types for checking a policy: the kinds its rules match and the CEL types of their schemas.

Used by ``policies.py``. The module looks the kinds up in the catalog.
"""

from __future__ import annotations

from typing import NamedTuple

from instar.base.json_values import Object
from instar.kube.admission.policies.kind_types import object_type
from instar.kube.admission.policies.type_checking import (
    MAX_KINDS,
    TypedKind,
    check_types,
    resources_to_check,
)
from instar.kube.api.names import GroupVersionKind, parse_group_version
from instar.kube.cel.types import Type
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.serving import VersionServing


class MatchedKinds(NamedTuple):
    """The served kinds that a policy is about."""

    kinds: dict[GroupVersionKind, VersionServing]
    params: VersionServing | None


class PolicyTypes:
    """Resolves the kinds of a policy to CEL types and runs the type check."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def of(self, spec: Object) -> MatchedKinds:
        """Return the matched kinds and the kind of params; unserved kinds are skipped."""
        found: dict[GroupVersionKind, VersionServing] = {}
        for resources in resources_to_check(spec):
            served = (self._version(*each) for each in resources)
            known = [version for version in served if version is not None]
            found |= {_kind(version): version for version in known[:MAX_KINDS]}
        return MatchedKinds(found, self._params(spec.get("paramKind")))

    def check(self, spec: Object, matched: MatchedKinds) -> list[Object]:
        """Type-check. May take long where schemas are large, and uses no catalog."""
        kinds = [TypedKind(kind, _type(version)) for kind, version in matched.kinds.items()]
        params = None if matched.params is None else _type(matched.params)
        return [*check_types(spec, kinds, params)]

    def _version(self, group: str, version: str, resource: str) -> VersionServing | None:
        served = self._catalog.find(group, resource)
        return None if served is None else served.serving.served(version)

    def _params(self, kind: Object | None) -> VersionServing | None:
        if kind is None:
            return None
        group, version = parse_group_version(kind.get("apiVersion", ""))
        resource = self._catalog.of_kind(group, kind.get("kind", ""))
        return None if resource is None else resource.serving.served(version)


def _kind(version: VersionServing) -> GroupVersionKind:
    return GroupVersionKind(*parse_group_version(version.api_version), version.kind)


def _type(version: VersionServing) -> Type:
    return object_type(version.compiled.structural, version.kind)
