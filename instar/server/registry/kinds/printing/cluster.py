"""Table cells of PriorityClass, RuntimeClass, Lease, CertificateSigningRequest, APIService and the
flow control kinds.

``printer.py`` calls them for Table responses (``kubectl get``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from instar.base.json_values import Object
from instar.server.registry.kinds.printing.printer import Cells
from instar.server.registry.kinds.printing.texts import NONE, age_of, condition, name_of, part
from instar.server.registry.resources.columns import human_duration


def _priority_class(obj: Object, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        obj.get("value", 0),
        bool(obj.get("globalDefault")),
        age_of(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


def _runtime_class(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("handler", ""), age_of(obj, now)]


def _lease(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), part(obj, "spec").get("holderIdentity") or "", age_of(obj, now)]


def _signing_request(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    wanted = spec.get("expirationSeconds")
    return [
        name_of(obj),
        age_of(obj, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if wanted is None else human_duration(wanted),
        _signing_state(obj),
    ]


def _signing_state(obj: Object) -> str:
    state = next((word for word in ("Denied", "Approved") if condition(obj, word)), "Pending")
    if condition(obj, "Failed"):
        state += ",Failed"
    return f"{state},Issued" if part(obj, "status").get("certificate") else state


def _api_service(obj: Object, now: datetime) -> list[Any]:
    service = part(obj, "spec").get("service")
    where = f"{service.get('namespace')}/{service.get('name')}" if service else "Local"
    available = condition(obj, "Available") or {}
    state = available.get("status", "Unknown")
    if state != "True" and available:
        state = f"{state} ({available.get('reason', '')})"
    return [name_of(obj), where, state, age_of(obj, now)]


def _flow_schema(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        part(spec, "priorityLevelConfiguration").get("name", ""),
        spec.get("matchingPrecedence", 0),
        part(spec, "distinguisherMethod").get("type") or NONE,
        age_of(obj, now),
        (condition(obj, "Dangling") or {}).get("status", "?"),
    ]


def _priority_level(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    limited = part(spec, "limited")
    queuing = part(limited, "limitResponse", "queuing")
    return [
        name_of(obj),
        spec.get("type", ""),
        limited.get("nominalConcurrencyShares", NONE),
        queuing.get("queues", NONE),
        queuing.get("handSize", NONE),
        queuing.get("queueLengthLimit", NONE),
        age_of(obj, now),
    ]


CELLS: Mapping[str, Cells] = {
    "apiservices": _api_service,
    "certificatesigningrequests": _signing_request,
    "flowschemas": _flow_schema,
    "leases": _lease,
    "priorityclasses": _priority_class,
    "prioritylevelconfigurations": _priority_level,
    "runtimeclasses": _runtime_class,
}
