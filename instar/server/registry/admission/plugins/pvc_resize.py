"""PersistentVolumeClaimResize plugin: allows growth only if the storage class allows expansion.

Part of the admission chain that ``server/lifecycle/admission_setup.py`` composes; the write verbs
call it.
"""

from __future__ import annotations

from fractions import Fraction

from instar.base import errors
from instar.base.json_values import Object
from instar.kube.builtin_rules.pods.compute_resources import quantity_value
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend

_CLAIMS = ("", "persistentvolumeclaims")
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class ClaimResize:
    def __init__(self, backend: Backend) -> None:
        self._classes = Lookup(backend, "storage.k8s.io", "storageclasses")

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return (
            PluginPhases.VALIDATE
            if (serving.group, serving.plural) == _CLAIMS
            else PluginPhases.NONE
        )

    def admit(self, operation: Operation) -> None:
        return

    def validate(self, operation: Operation) -> None:
        obj, old = operation.obj, operation.old
        if operation.verb is not Verb.UPDATE or operation.subresource or obj is None or old is None:
            return
        if _storage(obj) <= _storage(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise self._refused(operation, "Only bound persistent volume claims can be expanded")
        if not self._may_grow(obj, old):
            raise self._refused(
                operation,
                "only dynamically provisioned pvc can be resized and the storageclass that "
                "provisions the pvc must support resize",
            )

    def _may_grow(self, obj: Object, old: Object) -> bool:
        name = _class_of(obj)
        found = self._classes.get(name) if name and name == _class_of(old) else None
        return bool(found is not None and found.get("allowVolumeExpansion"))

    def _refused(self, operation: Operation, text: str) -> errors.Forbidden:
        return errors.forbidden(*_CLAIMS, operation.target.name, text)


def _storage(claim: Object) -> Fraction:
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return quantity_value(requests.get("storage", "0"))


def _class_of(claim: Object) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    return str(annotations.get(_CLASS_ANNOTATION) or claim["spec"].get("storageClassName") or "")
