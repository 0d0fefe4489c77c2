"""Tells whether a validating policy would deny the new CRD itself.

``findings.py`` calls it. The policy is evaluated as a server does. The user that will write the
CRD is unknown, so a policy about the user or their permissions is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from instar.base.json_values import Object
from instar.kube.admission.admission_request import request_document
from instar.kube.admission.evaluation import ExpressionInputs, Meter
from instar.kube.admission.expressions import AUTHORIZER, REQUEST, REQUEST_AUTHORIZER
from instar.kube.admission.match_rules import MatchedRequest, RequestEndpoint
from instar.kube.admission.matching import Criteria, read_match_resources
from instar.kube.admission.policies.params import select_params
from instar.kube.admission.policies.validating import ValidatingProgram
from instar.kube.api.crd import GROUP, PLURAL
from instar.kube.api.names import GroupVersionKind
from instar.tools.reviewer.admission.configurations import AdmissionPolicy, Configurations
from instar.tools.reviewer.reviewed_crd import ReviewedCrd

_CRDS = RequestEndpoint(
    GROUP, "v1", PLURAL, GroupVersionKind(GROUP, "v1", "CustomResourceDefinition")
)


def refusals(
    policy: AdmissionPolicy, old: ReviewedCrd | None, new: ReviewedCrd, beside: Configurations
) -> list[str]:
    """Return the distinct messages with which a policy would deny the CRD."""
    asked = MatchedRequest(
        "CREATE" if old is None else "UPDATE", _CRDS, name=new.name, equivalents=(_CRDS,)
    )
    if policy.mutating or policy.criteria.endpoint(asked) is None:
        return []
    if not _labelled(policy.criteria, old, new):
        return []
    program = ValidatingProgram(policy.spec)
    if {AUTHORIZER, REQUEST_AUTHORIZER} & program.reads:
        return []
    request = request_document(asked, _CRDS, {}, None, dry_run=False)
    inputs = ExpressionInputs(new.raw, None if old is None else old.raw, request)
    found: dict[str, None] = {}
    for params in _params(policy, asked, old, new, beside):
        outcome = program.validate(Meter(hurried=False), inputs._replace(params=params))
        for decision in outcome.decisions:
            # an error may come from what is unknown here: user, options
            unknowable = decision.failed and REQUEST in program.reads
            if not decision.forgiven and not unknowable:
                found[decision.message] = None
    return list(found)


def _labelled(criteria: Criteria, old: ReviewedCrd | None, new: ReviewedCrd) -> bool:
    return criteria.takes_object(*(_labels(side) for side in (new, old) if side is not None))


def _labels(side: ReviewedCrd) -> dict[str, str]:
    found = (side.raw.get("metadata") or {}).get("labels")
    return found if isinstance(found, dict) else {}


def _params(
    policy: AdmissionPolicy,
    asked: MatchedRequest,
    old: ReviewedCrd | None,
    new: ReviewedCrd,
    beside: Configurations,
) -> Iterator[Object | None]:
    """Return the parameters of each denying binding; a parameter that was not given cannot be
    checked.
    """
    for binding in policy.bindings:
        if "Deny" not in (binding.get("validationActions") or ()):
            continue
        match = binding.get("matchResources")
        if match is not None:
            criteria = read_match_resources(match, unruled=True)
            if criteria.endpoint(asked) is None or not _labelled(criteria, old, new):
                continue
        ref = binding.get("paramRef")
        if policy.spec.get("paramKind") is None or ref is None:
            yield None
        else:
            yield from _selected(policy.spec["paramKind"], ref, beside.others)


def _selected(kind: Object, ref: Object, others: Sequence[Object]) -> Iterator[Object]:
    wanted = select_params(ref, namespaced=bool(ref.get("namespace")), request_namespace="")
    for obj in others:
        if (obj.get("apiVersion"), obj.get("kind")) != (kind.get("apiVersion"), kind.get("kind")):
            continue
        metadata = obj.get("metadata") or {}
        if wanted.namespace != (metadata.get("namespace") or ""):
            continue
        labels = metadata.get("labels") or {}
        if wanted.name:
            if metadata.get("name") == wanted.name:
                yield obj
        elif wanted.selector is not None and wanted.selector.matches(labels):
            yield obj
