"""Names of the Secrets that a pod refers to, and whether its ServiceAccount allows them.

The ServiceAccount plugin (``service_account.py``) calls these pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.json_values import Object

_VOLUME_REFERENCES = (
    ("azureFile", "secretName"), ("cephfs", "secretRef"), ("cinder", "secretRef"),
    ("flexVolume", "secretRef"), ("rbd", "secretRef"), ("secret", "secretName"),
    ("scaleIO", "secretRef"), ("iscsi", "secretRef"), ("storageos", "secretRef"),
    ("csi", "nodePublishSecretRef"),
)  # fmt: skip
"""Volume source → its member that names a Secret, or refers to one."""
_CONTAINERS = (
    ("initContainers", "init container"),
    ("containers", "container"),
    ("ephemeralContainers", "ephemeral container"),
)


def refers_to_secrets(spec: Object) -> bool:
    """Return whether anything in the pod names a Secret."""
    if any(each.get("name") for each in spec.get("imagePullSecrets") or ()):
        return True
    for kind, _ in _CONTAINERS:
        for container in spec.get(kind) or ():
            if any(name for name, _ in _container_secrets(container)):
                return True
    return any(name for volume in spec.get("volumes") or () for name in _volume_secrets(volume))


def disallowed_secret(spec: Object, account: Object) -> str:
    """Return which Secret of a new pod its account does not list; empty if it lists them all."""
    listed = _names(account, "secrets")
    for volume in spec.get("volumes") or ():
        name = (volume.get("secret") or {}).get("secretName")
        if volume.get("secret") is not None and name not in listed:
            return (
                f'volume with secret.secretName="{name}" is not allowed because {_reason(account)}'
            )
    for kind in ("initContainers", "containers"):
        found = _disallowed_in_containers(spec, kind, account)
        if found:
            return found
    pulled = _names(account, "imagePullSecrets")
    for position, reference in enumerate(spec.get("imagePullSecrets") or ()):
        name = reference.get("name", "")
        if name not in pulled:
            where = f'imagePullSecrets[{position}].name="{name}"'
            return f"{where} is not allowed because {_reason(account, 'imagePullSecret')}"
    return ""


def disallowed_in_ephemeral_containers(spec: Object, account: Object) -> str:
    return _disallowed_in_containers(spec, "ephemeralContainers", account)


def _disallowed_in_containers(spec: Object, kind: str, account: Object) -> str:
    listed, word = _names(account, "secrets"), dict(_CONTAINERS)[kind]
    for container in spec.get(kind) or ():
        for name, where in _container_secrets(container):
            if name not in listed:
                return (
                    f"{word} {container.get('name', '')} with {where} referencing "
                    f'secret.secretName="{name}" is not allowed because {_reason(account)}'
                )
    return ""


def _reason(account: Object, what: str = "secret") -> str:
    return f"service account {account['metadata']['name']} does not reference that {what}"


def _names(account: Object, member: str) -> set[str]:
    return {each.get("name", "") for each in account.get(member) or ()}


def _container_secrets(container: Object) -> Iterator[tuple[str, str]]:
    """Yield the name of each Secret, and where the container refers to it."""
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
        if reference is not None:
            yield reference.get("name", ""), f"envVar {variable.get('name', '')}"
    for source in container.get("envFrom") or ():
        if source.get("secretRef") is not None:
            yield source["secretRef"].get("name", ""), "envFrom"


def _volume_secrets(volume: Object) -> Iterator[str]:
    for source, member in _VOLUME_REFERENCES:
        found = (volume.get(source) or {}).get(member)
        if found:
            yield found if isinstance(found, str) else found.get("name", "")
    for projection in (volume.get("projected") or {}).get("sources") or ():
        yield (projection.get("secret") or {}).get("name", "")
