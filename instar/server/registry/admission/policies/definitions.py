"""Stored policies and bindings, parsed once per change and joined with each other.

``plugin.py`` keeps them up to date; ``validating.py`` and ``mutating.py`` read them on each
request.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.admission.matching import Criteria, read_match_resources
from instar.kube.api.names import GroupVersionKind, parse_group_version
from instar.server.registry.admission.config_cache import ConfigCache
from instar.server.registry.resources.admission import Operation
from instar.server.registry.stored.backend import Backend

GROUP = "admissionregistration.k8s.io"
VALIDATING = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
MUTATING = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
OWN_PLURALS = frozenset((*VALIDATING, *MUTATING))
"""Resources that policies are never evaluated for."""


_Place = tuple[str, str, str, str]


@dataclass(eq=False, slots=True)
class PolicyDefinition:
    """A policy. ``program`` is compiled on first use and kept until the spec changes."""

    name: str
    spec: Object
    size: int
    """Bytes of the spec, an estimate of the compile time."""
    criteria: Criteria
    param_kind: GroupVersionKind | None
    ignores: bool
    """Whether ``failurePolicy`` is ``Ignore``."""
    program: Any = None
    heavy: int = 0
    """Number of next requests to evaluate in a thread at once, because one was too slow."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A parsed policy binding."""

    name: str
    policy: str
    criteria: Criteria | None
    """None matches everything."""
    param_ref: Object | None
    actions: tuple[str, ...]


class PolicyDefinitions(NamedTuple):
    policy: PolicyDefinition
    bindings: list[Binding]


def read_definition(obj: Object) -> PolicyDefinition:
    spec = obj["spec"]
    kind = spec.get("paramKind")
    return PolicyDefinition(
        name=obj["metadata"]["name"],
        spec=spec,
        size=len(orjson.dumps(spec)),
        criteria=read_match_resources(spec.get("matchConstraints") or {}),
        param_kind=None if kind is None else _param_kind(kind),
        ignores=spec.get("failurePolicy") == "Ignore",
    )


def _param_kind(kind: Object) -> GroupVersionKind:
    return GroupVersionKind(*parse_group_version(kind.get("apiVersion", "")), kind.get("kind", ""))


def read_binding(obj: Object) -> Binding:
    spec = obj["spec"]
    match = spec.get("matchResources")
    return Binding(
        name=obj["metadata"]["name"],
        policy=spec.get("policyName", ""),
        criteria=None if match is None else read_match_resources(match, unruled=True),
        param_ref=spec.get("paramRef"),
        actions=tuple(spec.get("validationActions") or ()),
    )


class BoundPolicy:
    """Policies of one kind that have a binding; falsy without any."""

    def __init__(self, backend: Backend, plurals: tuple[str, str]) -> None:
        policies, bindings = plurals
        self._read: dict[str, PolicyDefinition] = {}
        self._policies = ConfigCache(backend, GROUP, policies, self._keeping)
        self._bindings = ConfigCache(backend, GROUP, bindings, read_binding)
        self._seen: tuple[object, object] = (None, None)
        self._hooks: list[PolicyDefinitions] = []
        self._concerning: dict[_Place, list[PolicyDefinitions]] = {}

    def __bool__(self) -> bool:
        return bool(self._bindings.objects.entries)

    def hooks(self) -> list[PolicyDefinitions]:
        """Return policies with their bindings, in the order of the policies' names."""
        policies, bindings = self._policies.current(), self._bindings.current()
        if self._seen[0] is not policies or self._seen[1] is not bindings:
            self._seen = policies, bindings
            self._hooks = self._joined(policies, bindings)
            self._concerning.clear()
        return self._hooks

    def concerning(self, operation: Operation) -> list[PolicyDefinitions]:
        """Return the policies with rules that may match the operation; most match other
        resources."""
        hooks, serving = self.hooks(), operation.target.serving
        place = (serving.group, serving.plural, operation.verb, operation.subresource)
        known = self._concerning.get(place)
        if known is None:
            groups = {
                parse_group_version(each.api_version)[0] for each in serving.versions.values()
            }
            known = self._concerning[place] = [
                hook
                for hook in hooks
                if any(
                    rule.may_mean(operation.verb, groups, serving.plural, operation.subresource)
                    for rule in hook.policy.criteria.rules
                )
            ]
        return known

    def policy(self, name: str) -> PolicyDefinition | None:
        return self._policies.get(name)

    def _joined(
        self, policies: tuple[PolicyDefinition, ...], bindings: tuple[Binding, ...]
    ) -> list[PolicyDefinitions]:
        """Join policies and bindings; either without the other has no effect."""
        found = {policy.name: PolicyDefinitions(policy, []) for policy in policies}
        self._read = {policy.name: policy for policy in policies}
        for binding in bindings:
            if binding.policy in found:
                found[binding.policy].bindings.append(binding)
        return [hook for hook in found.values() if hook.bindings]

    def _keeping(self, obj: Object) -> PolicyDefinition:
        """Parse a policy, reusing the known one if only status or metadata changed."""
        known = self._read.get(obj["metadata"]["name"])
        if known is not None and known.spec == obj["spec"]:
            return known
        return read_definition(obj)
