"""ServiceAccount plugin: sets a pod's service account and mounts its token.

The admission chain (``server/lifecycle/admission_setup.py``) calls it for each write. Off by
default, because this server runs no pods.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from instar.base import errors
from instar.base.json_values import Object
from instar.base.taskless_wait import with_timeout
from instar.server.registry.admission.plugins.lookups import Lookup
from instar.server.registry.admission.plugins.pod_secrets import (
    disallowed_in_ephemeral_containers,
    disallowed_secret,
    refers_to_secrets,
)
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import CacheEntry
from instar.wire.storage.watchcache.collection import Change

_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_ENFORCE_ANNOTATION = "kubernetes.io/enforce-mountable-secrets"
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME = "kube-api-access-"
_TOKEN_SECONDS = 3607
"""Token lifetime; upstream recognises this odd number as a default that no user chose."""
_DEFAULT = "default"
_DEFAULT_SECONDS = 1.5
"""How long a pod waits for the default account of a new namespace, which a controller makes."""


class ServiceAccountAdmission:
    def __init__(self, backend: Backend, name_volume: Callable[[str], str]) -> None:
        """``name_volume`` generates an unused name from a prefix."""
        self._accounts = Lookup(backend, "", "serviceaccounts")
        self._name_volume = name_volume

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        if (serving.group, serving.plural) != ("", "pods"):
            return PluginPhases.NONE
        return PluginPhases.VALIDATE if verb is Verb.UPDATE else PluginPhases.BOTH

    def admit(self, operation: Operation) -> Awaitable[None] | None:
        obj = operation.obj
        if obj is None or not _is_new(operation) or _is_mirror(obj):
            return None
        spec = obj["spec"]
        spec["serviceAccountName"] = name = spec.get("serviceAccountName") or _DEFAULT
        spec["serviceAccount"] = name
        operation.changed = True
        suffix = f"{operation.target.namespace}/{name}"
        if name == _DEFAULT and self._accounts.get(suffix) is None:
            return self._admit_when_made(operation, spec, suffix)
        self._complete(spec, self._account(operation, name))
        return None

    async def _admit_when_made(self, operation: Operation, spec: Object, suffix: str) -> None:
        made = asyncio.Event()

        def changed(change: Change[CacheEntry]) -> None:
            if change.suffix == suffix:
                made.set()

        with self._accounts.observed(changed), contextlib.suppress(TimeoutError):
            await with_timeout(_DEFAULT_SECONDS, made.wait)
        self._complete(spec, self._account(operation, _DEFAULT))

    def _complete(self, spec: Object, account: Object) -> None:
        if _mounts(spec, account):
            self._mount(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(each) for each in account["imagePullSecrets"]]

    def validate(self, operation: Operation) -> None:
        obj = operation.obj
        if obj is None:
            return
        if operation.verb is Verb.UPDATE and operation.subresource == "ephemeralcontainers":
            self._check_ephemeral_containers(operation, obj["spec"])
        elif _is_new(operation) and _is_mirror(obj):
            _check_mirror(operation, obj["spec"])
        elif _is_new(operation):
            account = self._named_account(operation, obj["spec"])
            found = disallowed_secret(obj["spec"], account) if _enforces(account) else ""
            if found:
                raise _refused(operation, found)

    def _check_ephemeral_containers(self, operation: Operation, spec: Object) -> None:
        account = self._named_account(operation, spec)
        found = disallowed_in_ephemeral_containers(spec, account) if _enforces(account) else ""
        if found:
            raise errors.Unclassified(found)  # kube-apiserver does not turn it into a 403

    def _named_account(self, operation: Operation, spec: Object) -> Object:
        name = spec.get("serviceAccountName")
        if not name:
            place = f"{operation.target.namespace}/{operation.name}"
            raise _refused(operation, f"no service account specified for pod {place}")
        return self._account(operation, name)

    def _account(self, operation: Operation, name: str) -> Object:
        namespace = operation.target.namespace
        found = self._accounts.get(f"{namespace}/{name}")
        if found is None:
            text = f'serviceaccount "{name}" not found'
            raise _refused(
                operation, f"error looking up service account {namespace}/{name}: {text}"
            )
        return found

    def _mount(self, spec: Object) -> None:
        containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
        lacking = [each for each in containers if not _has_mount(each)]
        if not lacking:
            return
        volumes = spec.get("volumes") or []
        existing = [each["name"] for each in volumes if each["name"].startswith(_VOLUME)]
        name = existing[0] if existing else self._name_volume(_VOLUME)
        for container in lacking:
            mount = {"name": name, "readOnly": True, "mountPath": _MOUNT_PATH}
            container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
        if not existing:
            spec["volumes"] = [*volumes, _volume(name)]


def _is_new(operation: Operation) -> bool:
    return operation.verb is Verb.CREATE and not operation.subresource


def _is_mirror(obj: Object) -> bool:
    return _MIRROR_ANNOTATION in (obj["metadata"].get("annotations") or {})


def _enforces(account: Object) -> bool:
    """Return whether pods may use only the Secrets that the account lists."""
    annotations = account["metadata"].get("annotations") or {}
    return annotations.get(_ENFORCE_ANNOTATION) in _TRUE


def _check_mirror(operation: Operation, spec: Object) -> None:
    """A mirror pod shows a static pod of a node, which no account and no Secret reaches."""
    projections = [
        source
        for volume in spec.get("volumes") or ()
        for source in (volume.get("projected") or {}).get("sources") or ()
    ]
    if spec.get("serviceAccountName"):
        raise _refused(operation, "a mirror pod may not reference service accounts")
    if refers_to_secrets(spec):
        raise _refused(operation, "a mirror pod may not reference secrets")
    if any(source.get("serviceAccountToken") is not None for source in projections):
        text = "a mirror pod may not use ServiceAccountToken volume projections"
        raise _refused(operation, text)


def _refused(operation: Operation, why: str) -> errors.Forbidden:
    return errors.forbidden("", "pods", operation.name, why)


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
