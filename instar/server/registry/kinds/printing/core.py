"""Table cells of the core group; pods, events, storage and workloads have their own modules.

``printer.py`` calls them for Table responses (``kubectl get``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from instar.base.json_values import Object
from instar.server.registry.kinds.printing.events import event
from instar.server.registry.kinds.printing.networking import endpoints
from instar.server.registry.kinds.printing.pods import pod
from instar.server.registry.kinds.printing.printer import Cells
from instar.server.registry.kinds.printing.storage import claim, volume
from instar.server.registry.kinds.printing.texts import (
    NONE,
    UNKNOWN,
    age_of,
    balancer_addresses,
    condition,
    containers_of,
    labels_text,
    name_of,
    part,
)
from instar.server.registry.kinds.printing.workloads import replicas

_ROLE = "node-role.kubernetes.io/"


def _config_map(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), len(part(obj, "data")) + len(part(obj, "binaryData")), age_of(obj, now)]


def _secret(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("type", ""), len(part(obj, "data")), age_of(obj, now)]


def _account(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), age_of(obj, now)]


def _namespace(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), part(obj, "status").get("phase", ""), age_of(obj, now)]


def _component(obj: Object, now: datetime) -> list[Any]:
    healthy: Object = next(
        (one for one in obj.get("conditions") or () if one.get("type") == "Healthy"), {}
    )
    word = {"True": "Healthy", "False": "Unhealthy"}.get(healthy.get("status", ""), "Unknown")
    return [name_of(obj), word, healthy.get("message", ""), healthy.get("error", "")]


def _service(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    ports = [_port(one) for one in spec.get("ports") or ()]
    return [
        name_of(obj),
        spec.get("type", ""),
        (spec.get("clusterIPs") or [NONE])[0],
        _external(obj),
        ",".join(ports) or NONE,
        age_of(obj, now),
        labels_text(spec.get("selector")),
    ]


def _port(port: Object) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}"


def _external(obj: Object) -> str:
    spec = part(obj, "spec")
    given = ",".join(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") == "LoadBalancer":
        return ",".join(filter(None, (balancer_addresses(obj), given))) or "<pending>"
    return given or NONE


def _node(obj: Object, now: datetime) -> list[Any]:
    spec, info = part(obj, "spec"), part(obj, "status", "nodeInfo")
    ready = condition(obj, "Ready")
    word = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    kernel = info.get("kernelVersion", "")
    if kernel and info.get("architecture"):
        kernel = f"{kernel} ({info['architecture']})"
    return [
        name_of(obj),
        f"{word},SchedulingDisabled" if spec.get("unschedulable") else word,
        ",".join(_roles(part(obj, "metadata", "labels"))) or NONE,
        age_of(obj, now),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _roles(labels: Mapping[str, str]) -> list[str]:
    found = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    return sorted((found | {labels.get("kubernetes.io/role", "")}) - {""})


def _address(node: Object, type: str) -> str:
    for address in part(node, "status").get("addresses") or ():
        if address.get("type") == type:
            return str(address.get("address", ""))
    return NONE


def _quota(obj: Object, now: datetime) -> list[Any]:
    status = part(obj, "status")
    hard, used = status.get("hard") or {}, status.get("used") or {}
    shown: tuple[list[str], list[str]] = ([], [])
    for name in sorted(hard):
        text = f"{name}: {used.get(name, '0')}/{hard[name]}"
        shown[name.startswith("limits.")].append(text)
    return [name_of(obj), ", ".join(shown[0]), ", ".join(shown[1]), age_of(obj, now)]


def _pod_template(obj: Object, now: datetime) -> list[Any]:
    template = part(obj, "template")
    labels = part(template, "metadata").get("labels")
    return [name_of(obj), *containers_of(template), labels_text(labels)]


def _replication_controller(obj: Object, now: datetime) -> list[Any]:
    return [*replicas(obj, now), labels_text(part(obj, "spec").get("selector"))]


CELLS: Mapping[str, Cells] = {
    "componentstatuses": _component,
    "configmaps": _config_map,
    "endpoints": endpoints,
    "events": event,
    "namespaces": _namespace,
    "nodes": _node,
    "persistentvolumeclaims": claim,
    "persistentvolumes": volume,
    "pods": pod,
    "podtemplates": _pod_template,
    "replicationcontrollers": _replication_controller,
    "resourcequotas": _quota,
    "secrets": _secret,
    "serviceaccounts": _account,
    "services": _service,
}
