"""ServiceAccount plugin: sets a pod's service account and mounts its token.

The admission chain (``server/lifecycle/admission_setup.py``) calls it for each write. Off by
default, because this server runs no pods.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.base import errors
from instar.base.json_values import Object
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend

_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS = 3607
"""Token lifetime; upstream recognises this odd number as a default that no user chose."""


class ServiceAccountAdmission:
    def __init__(self, backend: Backend, name_volume: Callable[[str], str]) -> None:
        """``name_volume`` generates an unused name from a prefix."""
        self._accounts = Lookup(backend, "", "serviceaccounts")
        self._name_volume = name_volume

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        pods = (serving.group, serving.plural) == ("", "pods")
        return PluginPhases.BOTH if pods else PluginPhases.NONE

    def admit(self, operation: Operation) -> None:
        obj = operation.obj
        if obj is None or not _is_new(operation) or _is_mirror(obj):
            return
        spec = obj["spec"]
        spec["serviceAccountName"] = spec.get("serviceAccountName") or "default"
        spec["serviceAccount"] = spec["serviceAccountName"]
        account = self._account(operation, spec["serviceAccountName"])
        if _mounts(spec, account):
            self._mount(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(each) for each in account["imagePullSecrets"]]
        operation.changed = True

    def validate(self, operation: Operation) -> None:
        obj = operation.obj
        if obj is not None and _is_new(operation) and not _is_mirror(obj):
            self._account(operation, obj["spec"].get("serviceAccountName") or "")

    def _account(self, operation: Operation, name: str) -> Object:
        namespace = operation.target.namespace
        found = self._accounts.get(f"{namespace}/{name}")
        if found is None:
            raise errors.forbidden(
                "",
                "pods",
                operation.name,
                f'error looking up service account {namespace}/{name}: serviceaccount "{name}" '
                "not found",
            )
        return found

    def _mount(self, spec: Object) -> None:
        containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
        lacking = [each for each in containers if not _has_mount(each)]
        if not lacking:
            return
        name = self._name_volume("kube-api-access-")
        for container in lacking:
            mount = {"name": name, "readOnly": True, "mountPath": _MOUNT_PATH}
            container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
        spec["volumes"] = [*(spec.get("volumes") or ()), _volume(name)]


def _is_new(operation: Operation) -> bool:
    return operation.verb is Verb.CREATE and not operation.subresource


def _is_mirror(obj: Object) -> bool:
    return _MIRROR_ANNOTATION in (obj["metadata"].get("annotations") or {})


def _mounts(spec: Object, account: Object) -> bool:
    for holder in (spec, account):
        if holder.get("automountServiceAccountToken") is not None:
            return bool(holder["automountServiceAccountToken"])
    return True


def _has_mount(container: Object) -> bool:
    return any(each.get("mountPath") == _MOUNT_PATH for each in container.get("volumeMounts") or ())


def _volume(name: str) -> Object:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    return {
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
                {"configMap": authority},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
            ],
            "defaultMode": 420,
        },
    }
