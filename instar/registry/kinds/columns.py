"""What tables show of the built-in kinds; custom resources say it in their CRDs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from instar.api.crd import Column
from instar.plain import Object
from instar.registry.resources.columns import AGE_DESCRIPTION, ComputedColumn, age

_NONE = "<none>"


def _entries(obj: Object, now: datetime) -> str:
    return str(sum(len(obj.get(name) or ()) for name in ("data", "binaryData")))


def _secrets(obj: Object, now: datetime) -> str:
    return str(len(obj.get("secrets") or ()))


def _cluster_ip(obj: Object, now: datetime) -> str:
    return (obj.get("spec") or {}).get("clusterIP") or _NONE


def _external_ip(obj: Object, now: datetime) -> str:
    spec = obj.get("spec") or {}
    addresses = list(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or _NONE
    if spec.get("type") == "LoadBalancer":
        balancer = (obj.get("status") or {}).get("loadBalancer") or {}
        found = [part.get("ip") or part.get("hostname") for part in balancer.get("ingress") or ()]
        return ",".join([*filter(None, found), *addresses]) or "<pending>"
    return ",".join(addresses) or _NONE


def _ports(obj: Object, now: datetime) -> str:
    shown = []
    for port in (obj.get("spec") or {}).get("ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(shown) or _NONE


def _selector(obj: Object, now: datetime) -> str:
    selector = (obj.get("spec") or {}).get("selector") or {}
    return ",".join(f"{key}={selector[key]}" for key in sorted(selector)) or _NONE


def _last_seen(obj: Object, now: datetime) -> str:
    series = (obj.get("series") or {}).get("lastObservedTime")
    names = ("lastTimestamp", "deprecatedLastTimestamp", "eventTime")
    seen = series or next((obj[name] for name in names if obj.get(name)), None)
    return age(seen, now) if seen else "<unknown>"


def _object(obj: Object, now: datetime) -> str:
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    kind, name = str(about.get("kind", "")).lower(), about.get("name", "")
    return f"{kind}/{name}" if name else kind


def _message(obj: Object, now: datetime) -> str:
    return str(obj.get("message") or obj.get("note") or "").strip()


def _created(obj: Object, now: datetime) -> str:
    return str(obj["metadata"].get("creationTimestamp", ""))


def _computed(name: str, compute: Any, priority: int = 0, type: str = "string") -> Column:
    description = AGE_DESCRIPTION if type == "date" else f"{name} of the object."
    return ComputedColumn(name, type, description=description, priority=priority, compute=compute)


_AGE = Column("Age", "date", ".metadata.creationTimestamp", description=AGE_DESCRIPTION)

NAMESPACE = (Column("Status", "string", ".status.phase"), _AGE)
CONFIG_MAP = (_computed("Data", _entries), _AGE)
SECRET = (Column("Type", "string", ".type"), _computed("Data", _entries), _AGE)
SERVICE_ACCOUNT = (_computed("Secrets", _secrets), _AGE)
SERVICE = (
    Column("Type", "string", ".spec.type"),
    _computed("Cluster-IP", _cluster_ip),
    _computed("External-IP", _external_ip),
    _computed("Port(s)", _ports),
    _AGE,
    _computed("Selector", _selector, priority=1),
)
LEASE = (Column("Holder", "string", ".spec.holderIdentity"), _AGE)
EVENT = (
    _computed("Last Seen", _last_seen),
    Column("Type", "string", ".type"),
    Column("Reason", "string", ".reason"),
    _computed("Object", _object),
    _computed("Message", _message),
)
CRD = (_computed("Created At", _created, type="date"),)
