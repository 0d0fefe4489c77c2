"""CertificateSigningRequest plugins: approval and signing permissions, and forbidden subjects.

The admission chain (``server/lifecycle/admission_setup.py``) calls the plugin for each write. The
plugin implements upstream's CertificateApproval, CertificateSigning and
CertificateSubjectRestriction.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.base import errors
from instar.base.field_errors import go_quote
from instar.base.json_values import Object
from instar.kube.access.attributes import ADMIN_GROUP, Attributes
from instar.kube.access.authorizers import Authorizer
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving

_GROUP, _PLURAL = "certificates.k8s.io", "certificatesigningrequests"
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
_VERBS = {"approval": "approve", "status": "sign"}
"""Verb on the signer that the writer of the subresource needs."""


class CertificateAdmission:
    def __init__(self, authorizer: Authorizer, now: Callable[[], str]) -> None:
        self._authorizer, self._now = authorizer, now

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        concerned = (serving.group, serving.plural) == (_GROUP, _PLURAL)
        return PluginPhases.BOTH if concerned else PluginPhases.NONE

    def admit(self, operation: Operation) -> None:
        """Set the timestamps of new conditions that have none."""
        if operation.verb is not Verb.UPDATE or operation.subresource not in _VERBS:
            return
        former = {
            (one.get("type"), one.get("status")): one.get("lastTransitionTime")
            for one in _conditions(operation.old)
        }
        for one in _conditions(operation.obj):
            if not one.get("lastUpdateTime"):
                one["lastUpdateTime"] = self._now()
            if not one.get("lastTransitionTime"):
                since = former.get((one.get("type"), one.get("status")))
                one["lastTransitionTime"] = since or self._now()

    async def validate(self, operation: Operation) -> None:
        obj, old = operation.obj, operation.old
        if operation.verb is Verb.CREATE and obj is not None:
            _check_subject(obj, operation)
        verb = _VERBS.get(operation.subresource)
        if operation.verb is not Verb.UPDATE or verb is None or obj is None or old is None:
            return
        if verb == "sign" and _outcome(obj) == _outcome(old):
            return
        signer = str(old["spec"].get("signerName", ""))
        if not await self._may(operation, verb, signer):
            text = f"user not permitted to {verb} requests with signerName {go_quote(signer)}"
            raise errors.forbidden(_GROUP, _PLURAL, operation.target.name, text)

    async def _may(self, operation: Operation, verb: str, signer: str) -> bool:
        """Check the permission for the signer by name, then for all of its domain."""
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            user = operation.asked.user
            asked = Attributes(user, verb, _GROUP, "*", "signers", name=name)
            decision = self._authorizer.decide(asked)
            if decision is None:
                decision = await self._authorizer.ask(asked)
            if decision.allowed:
                return True
        return False


def _check_subject(obj: Object, operation: Operation) -> None:
    spec = obj["spec"]
    if spec.get("signerName") != _CLIENT_SIGNER:
        return
    # Imported here, because the certificate library is needed for nothing else.
    from instar.kube.builtin_rules.signing import organizations

    if ADMIN_GROUP in organizations(str(spec.get("request", ""))):
        text = f"use of {_CLIENT_SIGNER} signer with {ADMIN_GROUP} group is not allowed"
        raise errors.forbidden(_GROUP, _PLURAL, str(obj["metadata"].get("name", "")), text)


def _conditions(obj: Object | None) -> list[Object]:
    return ((obj or {}).get("status") or {}).get("conditions") or []


def _outcome(obj: Object) -> tuple[object, object]:
    status = obj.get("status") or {}
    return status.get("certificate"), status.get("conditions")
