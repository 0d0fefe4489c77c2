"""Plugins that default a field from another object or from the user.

The admission chain (``server/lifecycle/admission_setup.py``) calls them for each write. The plugins
are upstream's DefaultStorageClass, DefaultIngressClass and TaintNodesByCondition, and a plugin that
sets the requesting user of a CertificateSigningRequest.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.base.json_values import Object
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend

_DEFAULT_STORAGE = "storageclass.kubernetes.io/is-default-class"
_STORAGE_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_INGRESS = "ingressclass.kubernetes.io/is-default-class"
_INGRESS_ANNOTATION = "kubernetes.io/ingress.class"
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


_Act = Callable[[Operation, Object], None]


class ClassAdmission:
    """DefaultStorageClass, DefaultIngressClass, TaintNodesByCondition, CertificateSubject."""

    def __init__(self, backend: Backend, off: frozenset[str] = frozenset()) -> None:
        """``off`` names the disabled plugins among them."""
        self._storage = Lookup(backend, "storage.k8s.io", "storageclasses")
        self._ingress = Lookup(backend, "networking.k8s.io", "ingressclasses")
        acts: dict[tuple[str, str], tuple[str, _Act]] = {
            ("", "persistentvolumeclaims"): ("DefaultStorageClass", self._storage_class),
            ("networking.k8s.io", "ingresses"): ("DefaultIngressClass", self._ingress_class),
            ("", "nodes"): ("TaintNodesByCondition", _taint),
            ("certificates.k8s.io", "certificatesigningrequests"): ("", _name_requester),
        }
        self._acts = {place: act for place, (name, act) in acts.items() if name not in off}

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        concerned = (serving.group, serving.plural) in self._acts
        return PluginPhases.ADMIT if concerned else PluginPhases.NONE

    def admit(self, operation: Operation) -> None:
        serving = operation.target.serving
        act = self._acts.get((serving.group, serving.plural))
        if act is not None and operation.verb is Verb.CREATE and operation.obj is not None:
            act(operation, operation.obj)

    def validate(self, operation: Operation) -> None:
        return

    def _storage_class(self, operation: Operation, obj: Object) -> None:
        spec, annotations = obj["spec"], obj["metadata"].get("annotations") or {}
        if spec.get("storageClassName") is None and _STORAGE_ANNOTATION not in annotations:
            found = self._storage.annotated(_DEFAULT_STORAGE)
            if found is not None:
                spec["storageClassName"] = found["metadata"]["name"]

    def _ingress_class(self, operation: Operation, obj: Object) -> None:
        annotations = obj["metadata"].get("annotations") or {}
        if obj["spec"].get("ingressClassName") is None and _INGRESS_ANNOTATION not in annotations:
            found = self._ingress.annotated(_DEFAULT_INGRESS)
            if found is not None:
                obj["spec"]["ingressClassName"] = found["metadata"]["name"]


def _taint(operation: Operation, obj: Object) -> None:
    taints = obj["spec"].setdefault("taints", [])
    if not any(taint.get("key") == _NOT_READY["key"] for taint in taints):
        taints.append(dict(_NOT_READY))


def _name_requester(operation: Operation, obj: Object) -> None:
    """Set the requester fields of a CertificateSigningRequest to the authenticated user."""
    user, spec = operation.asked.user, obj["spec"]
    for name in ("username", "uid", "groups", "extra"):
        spec.pop(name, None)
    spec["username"] = user.name
    if user.uid:
        spec["uid"] = user.uid
    if user.groups:
        spec["groups"] = list(user.groups)
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
