"""Reads webhook configurations, policies and bindings from documents.

Called by ``findings.py`` and ``refusing.py``, by the reviewer's ``sources.py``, and by
``tools/snapshots/capture/scope.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.admission.match_rules import RequestEndpoint
from instar.kube.admission.matching import Criteria, read_criteria, read_match_resources
from instar.kube.api.encoding.manifests import Document
from instar.kube.api.names import GroupVersionKind
from instar.tools.reviewer.reviewed_crd import ReviewedCrd

GROUP = "admissionregistration.k8s.io"
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_POLICIES = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
_BINDINGS = ("ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding")
PLURALS = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}


@dataclass(frozen=True, slots=True)
class Configured:
    """A webhook or policy, which has match rules."""

    document: Document
    shown: str
    """Name as a finding shows it."""
    criteria: Criteria
    spec: Object
    """The spec that holds its expressions."""
    path: str
    """Path of the spec in its document."""


@dataclass(frozen=True, slots=True)
class AdmissionPolicy(Configured):
    mutating: bool
    bindings: tuple[Object, ...]
    """Specs of the bindings that name it."""


@dataclass
class Configurations:
    webhooks: list[Configured] = field(default_factory=list)
    policies: list[AdmissionPolicy] = field(default_factory=list)
    others: list[Object] = field(default_factory=list)
    """Other documents, which may be parameters of a policy."""

    def all(self) -> Iterator[Configured]:
        yield from self.webhooks
        yield from self.policies


def read_configurations(documents: Iterable[Document]) -> Configurations:
    """Return the configurations; documents of other groups or of a wrong shape are skipped."""
    found = Configurations()
    bindings: dict[tuple[str, str], list[Object]] = {}
    policies: list[Document] = []
    for document in documents:
        obj = document.value
        if not isinstance(obj, dict):
            continue
        kind, spec = str(obj.get("kind")), obj.get("spec")
        if not str(obj.get("apiVersion", "")).startswith(f"{GROUP}/"):
            found.others.append(obj)
        elif kind in _WEBHOOKS:
            found.webhooks += _webhooks(document)
        elif kind in _BINDINGS and isinstance(spec, dict):
            key = (kind.removesuffix("Binding"), str(spec.get("policyName")))
            bindings.setdefault(key, []).append(spec)
        elif kind in _POLICIES and isinstance(spec, dict):
            policies.append(document)
    for document in policies:
        key = (document.value["kind"], _name(document.value))
        found.policies.append(_policy(document, tuple(bindings.get(key, ()))))
    return found


def _webhooks(document: Document) -> Iterator[Configured]:
    name = _name(document.value)
    for position, webhook in enumerate(document.value.get("webhooks") or ()):
        if isinstance(webhook, dict):
            shown = f"webhook {webhook.get('name')} of {name}"
            conditions = {"matchConditions": webhook.get("matchConditions") or []}
            path = f"webhooks[{position}]"
            yield Configured(document, shown, read_criteria(webhook), conditions, path)


def _policy(document: Document, bindings: tuple[Object, ...]) -> AdmissionPolicy:
    spec, kind = document.value["spec"], document.value["kind"]
    return AdmissionPolicy(
        document=document,
        shown=f"{kind} {_name(document.value)}",
        criteria=read_match_resources(spec.get("matchConstraints") or {}),
        spec=spec,
        path="spec",
        mutating=kind == "MutatingAdmissionPolicy",
        bindings=bindings,
    )


def _name(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def endpoint(side: ReviewedCrd, version: str) -> RequestEndpoint:
    crd = side.crd
    kind = GroupVersionKind(crd.group, version, crd.names.kind)
    return RequestEndpoint(crd.group, version, crd.names.plural, kind)


def named_versions(criteria: Criteria, side: ReviewedCrd) -> list[str]:
    """Return the versions of a CRD that match rules name, in the CRD's order."""
    group, plural = side.crd.group, side.crd.names.plural
    rules = [
        rule
        for rule in criteria.rules
        if any(rule.may_mean(each, (group,), plural, "") for each in ("CREATE", "UPDATE", "DELETE"))
    ]
    names = [version.name for version in side.crd.versions]
    return [name for name in names if any({"*", name} & rule.versions for rule in rules)]
