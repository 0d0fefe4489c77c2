"""Scope of a capture: the resources that a snapshot contains, and the admission configurations
(webhooks, policies) that apply to them. Pure.

The ``snapshot`` command makes a ``CaptureScope``; ``taking.py`` and the capture sources use it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import field
from typing import NamedTuple

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.admission.match_rules import AdmissionRule
from instar.kube.api.crd import Crd
from instar.kube.api.encoding.manifests import Document
from instar.kube.facts.resources import ResourceFacts, resources
from instar.tools.reviewer.admission.configurations import GROUP as ADMISSION
from instar.tools.reviewer.admission.configurations import PLURALS, read_configurations
from instar.tools.snapshots.capture.redacting import RedactedField
from instar.tools.snapshots.manifest import CRDS, objects_of, others_of

_OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_RBAC = "rbac.authorization.k8s.io"


class CapturedResource(NamedTuple):
    """A collection to be captured."""

    group: str
    version: str
    """The version it is listed at through an API."""
    plural: str
    kind: str
    part: str

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


CRD_RESOURCE = CapturedResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", CRDS
)


@dataclass(frozen=True)
class CaptureScope:
    """Which objects a snapshot takes."""

    crds: frozenset[str] = frozenset()
    """Names of CRDs; empty means all."""
    more: tuple[str, ...] = ()
    """``rbac``, and built-in resources as ``plural.group``."""
    redacted: tuple[RedactedField, ...] = ()
    secret_data: bool = False
    """Whether the values of Secrets are kept."""

    def wants(self, crd_name: str) -> bool:
        return not self.crds or crd_name in self.crds

    def document(self) -> Object:
        """Return the scope as a document, by which a resumed run checks that its scope is
        the same.
        """
        return {
            "crds": sorted(self.crds),
            "more": list(self.more),
            "redacted": [each.text for each in self.redacted],
            "secretData": self.secret_data,
        }


class NoSuchResource(Exception):
    """An unknown resource; ``str()`` is its name."""


def built_in_resources(asked: CaptureScope) -> list[CapturedResource]:
    """Return the built-in resources except admission configurations. Raises ``NoSuchResource``."""
    found = [_builtin("namespaces")]
    for name in asked.more:
        if name == "rbac":
            found += [_of(each) for each in _preferred() if each.group == _RBAC]
        else:
            found.append(_builtin(name))
    return list(dict.fromkeys(found))


def configurations() -> list[CapturedResource]:
    return [_builtin(f"{plural}.{ADMISSION}") for plural in PLURALS.values()]


def resource_of(crd: Crd, *, stored: bool) -> CapturedResource | None:
    """Return the resource of a CRD, listed at its storage version if that is served. None if no
    version is served, unless it is read from a store.
    """
    served = [version.name for version in crd.versions] if stored else crd.served()
    if not served:
        return None
    storage = crd.storage_version()
    version = storage if storage in served else served[0]
    names = crd.names
    return CapturedResource(crd.group, version, names.plural, names.kind, objects_of(crd.name))


@dataclass
class Touching:
    """Matcher of webhook configurations, policies and bindings that apply to captured resources."""

    targets: Collection[tuple[str, str]]
    """(group, plural)."""
    documents: list[Document] = field(default_factory=list)

    def add(self, objects: Iterable[Object]) -> None:
        self.documents += [Document(obj, "") for obj in objects]

    def kept(self) -> list[Object]:
        found = read_configurations(self.documents)
        meant = {
            id(each.document.value) for each in found.all() if self._means(each.criteria.rules)
        }
        policies = {
            (str(obj["kind"]), str(obj["metadata"]["name"]))
            for obj in (document.value for document in self.documents)
            if id(obj) in meant
        }
        return [
            document.value
            for document in self.documents
            if id(document.value) in meant or _bound(document.value) in policies
        ]

    def _means(self, rules: Iterable[AdmissionRule]) -> bool:
        return any(
            rule.may_mean(operation, (group,), plural, below)
            for rule in rules
            for operation in _OPERATIONS
            for group, plural in self.targets
            for below in ("", "status", "scale")
        )


def _bound(obj: Object) -> tuple[str, str]:
    """Return the name of the policy that a binding refers to."""
    spec = obj.get("spec")
    name = spec.get("policyName") if isinstance(spec, dict) else None
    return str(obj.get("kind")).removesuffix("Binding"), str(name)


def _preferred() -> list[ResourceFacts]:
    """Return each built-in resource once, at its preferred version."""
    found: dict[tuple[str, str], ResourceFacts] = {}
    for facts in resources():
        if "list" in facts.verbs:
            found.setdefault((facts.group, facts.plural), facts)
    return list(found.values())


def _builtin(name: str) -> CapturedResource:
    plural, _, group = name.partition(".")
    for facts in _preferred():
        if (facts.plural, facts.group) == (plural, group):
            return _of(facts)
    raise NoSuchResource(name)


def _of(facts: ResourceFacts) -> CapturedResource:
    name = f"{facts.plural}.{facts.group}" if facts.group else facts.plural
    return CapturedResource(facts.group, facts.version, facts.plural, facts.kind, others_of(name))
