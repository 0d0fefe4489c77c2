"""Validates the containers of a pod: regular, init and ephemeral.

Called by ``pod_spec.py`` and ``update.py``.
"""

from __future__ import annotations

from collections.abc import Iterable

from instar.base.field_errors import (
    FieldError,
    child,
    duplicate,
    forbidden,
    index,
    invalid,
    missing,
    not_supported,
    required,
)
from instar.base.json_values import Object
from instar.kube.api.string_rules import dns1123_label
from instar.kube.builtin_rules.basics import port_errors, port_name, texts_at
from instar.kube.builtin_rules.pods.compute_resources import requirement_errors
from instar.kube.builtin_rules.pods.environment import env_errors, env_from_errors
from instar.kube.builtin_rules.pods.probes import (
    lifecycle_errors,
    liveness_errors,
    readiness_errors,
)
from instar.kube.builtin_rules.pods.security import container_security_errors
from instar.kube.builtin_rules.pods.volumes import descending_path_errors

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_NOT_RESTARTED = "may not be set for init containers without restartPolicy=Always"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_NOT_EPHEMERAL = (
    "ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources",
    "resizePolicy",
)  # fmt: skip


def container_errors(
    containers: list[Object], volumes: frozenset[str], path: str
) -> list[FieldError]:
    if not containers:
        return [required(path)]
    found: list[FieldError] = []
    names: set[str] = set()
    for position, container in enumerate(containers):
        where = index(path, position)
        found += common_errors(container, volumes, where)
        found += _duplicate_name_errors(container, names, where)
        found += _hook_errors(container, where)
    return found + host_port_errors(containers, path)


def init_container_errors(
    containers: list[Object], others: Iterable[str], volumes: frozenset[str], path: str
) -> list[FieldError]:
    """Check init containers; names are unique among all containers of a pod."""
    found: list[FieldError] = []
    names = set(others)
    for position, container in enumerate(containers):
        where = index(path, position)
        found += common_errors(container, volumes, where)
        found += _duplicate_name_errors(container, names, where)
        policy = container.get("restartPolicy")
        if policy is not None and policy != "Always":
            found.append(not_supported(child(where, "restartPolicy"), policy, ("Always",)))
        if policy == "Always":
            found += _hook_errors(container, where)
        else:
            found += [
                forbidden(child(where, name), _NOT_RESTARTED)
                for name in ("lifecycle", *_PROBES)
                if container.get(name) is not None
            ]
        found += host_port_errors([container], where)
    return found


def ephemeral_container_errors(
    containers: list[Object], spec: Object, volumes: frozenset[str], path: str
) -> list[FieldError]:
    found: list[FieldError] = []
    others = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    names = {one.get("name", "") for one in others}
    targets = set(names)
    for position, container in enumerate(containers):
        where = index(path, position)
        found += common_errors(container, volumes, where)
        found += _duplicate_name_errors(container, names, where)
        target = container.get("targetContainerName")
        if target and target not in targets:
            found.append(missing(child(where, "targetContainerName"), target))
        found += [
            forbidden(child(where, name), "cannot be set for an Ephemeral Container")
            for name in _NOT_EPHEMERAL
            if container.get(name)
        ]
    return found


def _duplicate_name_errors(container: Object, names: set[str], path: str) -> list[FieldError]:
    name = container.get("name", "")
    if name in names:
        return [duplicate(child(path, "name"), name)]
    if name:
        names.add(name)
    return []


def _hook_errors(container: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if container.get("lifecycle") is not None:
        found += lifecycle_errors(container["lifecycle"], child(path, "lifecycle"))
    for name, check in (
        ("livenessProbe", liveness_errors),
        ("readinessProbe", readiness_errors),
        ("startupProbe", liveness_errors),
    ):
        if container.get(name) is not None:
            found += check(container[name], child(path, name))
    return found


def common_errors(container: Object, volumes: frozenset[str], path: str) -> list[FieldError]:
    name, policy = container.get("name", ""), container.get("terminationMessagePolicy", "")
    where = child(path, "name")
    found = texts_at(where, name, dns1123_label(name)) if name else [required(where)]
    if not container.get("image"):
        found.append(required(child(path, "image")))
    if policy not in _MESSAGE_POLICIES:
        where = child(path, "terminationMessagePolicy")
        found.append(not_supported(where, policy, _MESSAGE_POLICIES))
    for part, check in (
        ("ports", _port_list_errors),
        ("env", env_errors),
        ("envFrom", env_from_errors),
    ):
        if container.get(part):
            found += check(container[part], child(path, part))
    if container.get("volumeMounts"):
        found += _mount_errors(container, volumes, child(path, "volumeMounts"))
    if container.get("volumeDevices"):
        found += _device_errors(container, volumes, child(path, "volumeDevices"))
    pull = container.get("imagePullPolicy", "")
    if pull not in _PULL_POLICIES:
        found.append(not_supported(child(path, "imagePullPolicy"), pull, _PULL_POLICIES))
    if container.get("resources"):
        found += requirement_errors(container["resources"], child(path, "resources"))
    context = container.get("securityContext")
    if context is not None:
        found += container_security_errors(context, child(path, "securityContext"))
    return found


def _port_list_errors(ports: list[Object], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    names: set[str] = set()
    for position, port in enumerate(ports):
        where, name = index(path, position), port.get("name", "")
        texts = port_name(name) if name else []
        if texts:
            found += texts_at(child(where, "name"), name, texts)
        elif name in names:
            found.append(duplicate(child(where, "name"), name))
        elif name:
            names.add(name)
        number, place = port.get("containerPort", 0), child(where, "containerPort")
        found += port_errors(number, place) if number else [required(place)]
        if port.get("hostPort"):
            found += port_errors(port["hostPort"], child(where, "hostPort"))
        protocol = port.get("protocol", "")
        if protocol not in _PROTOCOLS:
            found.append(not_supported(child(where, "protocol"), protocol, _PROTOCOLS))
    return found


def host_port_errors(containers: list[Object], path: str) -> list[FieldError]:
    """Check that no two containers use the same host port."""
    found: list[FieldError] = []
    taken: set[tuple[str, str, int]] = set()
    for position, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if not host:
                continue
            wanted = (port.get("protocol", ""), port.get("hostIP", ""), host)
            if wanted in taken:
                where = f"{index(path, position)}.ports[{number}].hostPort"
                found.append(duplicate(where, "/".join(map(str, wanted))))
            taken.add(wanted)
    return found


def _mount_errors(container: Object, volumes: frozenset[str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    points: set[str] = set()
    for position, mount in enumerate(container.get("volumeMounts") or ()):
        where = index(path, position)
        name, point = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            found.append(required(child(where, "name")))
        if name not in volumes:
            found.append(missing(child(where, "name"), name))
        if not point:
            found.append(required(child(where, "mountPath")))
        if point in points:
            found.append(invalid(child(where, "mountPath"), point, "must be unique"))
        points.add(point)
        found += _sub_path_errors(mount, where)
        found += _propagation_errors(container, mount, child(where, "mountPropagation"))
    return found


def _sub_path_errors(mount: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    plain, expression = mount.get("subPath"), mount.get("subPathExpr")
    if plain:
        found += descending_path_errors(plain, child(path, "subPath"))
    if expression:
        where = child(path, "subPathExpr")
        if plain:
            text = "subPathExpr and subPath are mutually exclusive"
            found.append(invalid(where, expression, text))
        found += descending_path_errors(expression, where)
    return found


def _propagation_errors(container: Object, mount: Object, path: str) -> list[FieldError]:
    value = mount.get("mountPropagation")
    if value is None:
        return []
    if value not in _PROPAGATIONS:
        return [not_supported(path, value, _PROPAGATIONS)]
    privileged = (container.get("securityContext") or {}).get("privileged")
    if value == "Bidirectional" and not privileged:
        text = "Bidirectional mount propagation is available only to privileged containers"
        return [forbidden(path, text)]
    return []


def _device_errors(container: Object, volumes: frozenset[str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    names: set[str] = set()
    points: set[str] = set()
    for position, device in enumerate(container.get("volumeDevices") or ()):
        where = index(path, position)
        name, point = device.get("name", ""), device.get("devicePath", "")
        if not name:
            found.append(required(child(where, "name")))
        if name in names:
            found.append(invalid(child(where, "name"), name, "must be unique"))
        if name not in volumes:
            found.append(missing(child(where, "name"), name))
        if not point:
            found.append(required(child(where, "devicePath")))
        elif point in points:
            found.append(invalid(child(where, "devicePath"), point, "must be unique"))
        names.add(name)
        points.add(point)
    return found


def padded_image_errors(containers: list[Object], path: str) -> list[FieldError]:
    """Check for white space around image names; only in pods, since templates may have it."""
    text = "must not have leading or trailing whitespace"
    return [
        invalid(child(index(path, position), "image"), one["image"], text)
        for position, one in enumerate(containers)
        if one.get("image", "") != one.get("image", "").strip()
    ]
