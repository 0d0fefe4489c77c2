"""Webhook configurations, policies and bindings among documents, by what the reviewer asks them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.admission.match_rules import RequestEndpoint
from instar.kube.admission.matching import Criteria, read_criteria, read_match_resources
from instar.kube.api.encoding.manifests import Document
from instar.kube.api.names import GroupVersionKind
from instar.tools.reviewer.reviewed_crd import Side

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
    """Something with rules: a webhook of a configuration, or a policy."""

    document: Document
    shown: str
    """As a finding names it."""
    criteria: Criteria
    spec: Object
    """Where its expressions are."""
    path: str
    """Of the spec in its document, for whoever looks for an expression there."""


@dataclass(frozen=True, slots=True)
class AdmissionPolicy(Configured):
    mutating: bool
    bindings: tuple[Object, ...]
    """Specs of those that name it."""


@dataclass
class Configurations:
    webhooks: list[Configured] = field(default_factory=list)
    policies: list[AdmissionPolicy] = field(default_factory=list)
    others: list[Object] = field(default_factory=list)
    """What lies beside them, and may be a policy's parameter."""

    def all(self) -> Iterator[Configured]:
        yield from self.webhooks
        yield from self.policies


def read_configurations(documents: Iterable[Document]) -> Configurations:
    """What is not of this group, or has not the shape of it, is none."""
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


def endpoint(side: Side, version: str) -> RequestEndpoint:
    crd = side.crd
    kind = GroupVersionKind(crd.group, version, crd.names.kind)
    return RequestEndpoint(crd.group, version, crd.names.plural, kind)


def named_versions(criteria: Criteria, side: Side) -> list[str]:
    """The versions of a CRD that rules name, in its own order."""
    group, plural = side.crd.group, side.crd.names.plural
    rules = [
        rule
        for rule in criteria.rules
        if any(rule.may_mean(each, (group,), plural, "") for each in ("CREATE", "UPDATE", "DELETE"))
    ]
    names = [version.name for version in side.crd.versions]
    return [name for name in names if any({"*", name} & rule.versions for rule in rules)]
