"""Field numbers of the built-in kinds that clients send as protobuf. Facts, hardly any logic."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from instar.api.protobuf_wire import ProtobufError, as_bytes, as_number, as_text, wire_fields

Read = Callable[[int | bytes], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    read: Read = as_text
    message: Message | None = None
    many: bool = False
    mapped: bool = False
    """A map with text keys; ``read`` is for its values."""
    pointer: bool = False
    """Go tells an empty value from none here, so an empty one counts."""


Message = Mapping[int, Field]


def _flag(value: int | bytes) -> bool:
    return bool(as_number(value))


def _blob(value: int | bytes) -> str:
    return base64.b64encode(as_bytes(value)).decode()


def _moment(precision: str) -> Read:
    """A Timestamp message; an empty one is no time at all."""

    def read(value: int | bytes) -> str | None:
        if not value:
            return None
        parts = {number: as_number(part) for number, part in wire_fields(as_bytes(value))}
        try:
            since = timedelta(seconds=parts.get(1, 0), microseconds=parts.get(2, 0) // 1000)
            moment = _EPOCH + since
        except OverflowError as error:
            raise ProtobufError("a time out of range") from error
        return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"

    return read


_time, _micro_time = _moment("seconds"), _moment("microseconds")


def _int_or_string(value: int | bytes) -> int | str:
    parts = dict(wire_fields(as_bytes(value)))
    return as_text(parts.get(3, b"")) if parts.get(1) else as_number(parts.get(2, 0))


def _field_set(value: int | bytes) -> Any:
    raw = as_bytes(dict(wire_fields(as_bytes(value))).get(1, b"{}"))
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ProtobufError("fieldsV1 is not JSON") from error


def _pointer(name: str, read: Read = as_text) -> Field:
    return Field(name, read, pointer=True)


def _list(name: str, message: Message | None = None) -> Field:
    return Field(name, message=message, many=True)


def _map(name: str, read: Read = as_text) -> Field:
    return Field(name, read, mapped=True)


def _part(name: str, message: Message) -> Field:
    return Field(name, message=message, pointer=True)


def _number(name: str) -> Field:
    return Field(name, as_number)


_OWNER: Message = {
    1: Field("kind"),
    3: Field("name"),
    4: Field("uid"),
    5: Field("apiVersion"),
    6: _pointer("controller", _flag),
    7: _pointer("blockOwnerDeletion", _flag),
}
_MANAGED: Message = {
    1: Field("manager"),
    2: Field("operation"),
    3: Field("apiVersion"),
    4: Field("time", _time),
    6: Field("fieldsType"),
    7: _pointer("fieldsV1", _field_set),
    8: Field("subresource"),
}
_METADATA = _part(
    "metadata",
    {
        1: Field("name"),
        2: Field("generateName"),
        3: Field("namespace"),
        4: Field("selfLink"),
        5: Field("uid"),
        6: Field("resourceVersion"),
        7: _number("generation"),
        8: Field("creationTimestamp", _time),
        9: Field("deletionTimestamp", _time),
        10: _pointer("deletionGracePeriodSeconds", as_number),
        11: _map("labels"),
        12: _map("annotations"),
        13: _list("ownerReferences", _OWNER),
        14: _list("finalizers"),
        17: _list("managedFields", _MANAGED),
    },
)
_CONDITION: Message = {
    1: Field("type"),
    2: Field("status"),
    4: Field("lastTransitionTime", _time),
    5: Field("reason"),
    6: Field("message"),
}
_REFERENCE: Message = {
    1: Field("kind"),
    2: Field("namespace"),
    3: Field("name"),
    4: Field("uid"),
    5: Field("apiVersion"),
    6: Field("resourceVersion"),
    7: Field("fieldPath"),
}

_CONFIG_MAP: Message = {
    1: _METADATA,
    2: _map("data"),
    3: _map("binaryData", _blob),
    4: _pointer("immutable", _flag),
}
_SECRET: Message = {
    1: _METADATA,
    2: _map("data", _blob),
    3: Field("type"),
    4: _map("stringData"),
    5: _pointer("immutable", _flag),
}
_NAMESPACE: Message = {
    1: _METADATA,
    2: _part("spec", {1: _list("finalizers")}),
    3: _part("status", {1: Field("phase"), 2: _list("conditions", _CONDITION)}),
}
_SERVICE_ACCOUNT: Message = {
    1: _METADATA,
    2: _list("secrets", _REFERENCE),
    3: _list("imagePullSecrets", {1: Field("name")}),
    4: _pointer("automountServiceAccountToken", _flag),
}
_SERVICE_PORT: Message = {
    1: Field("name"),
    2: Field("protocol"),
    3: _pointer("port", as_number),
    4: Field("targetPort", _int_or_string),
    5: _number("nodePort"),
    6: _pointer("appProtocol"),
}
_INGRESS_PORT: Message = {
    1: _pointer("port", as_number),
    2: Field("protocol"),
    3: _pointer("error"),
}
_INGRESS: Message = {
    1: Field("ip"),
    2: Field("hostname"),
    3: _pointer("ipMode"),
    4: _list("ports", _INGRESS_PORT),
}
_SERVICE_SPEC: Message = {
    1: _list("ports", _SERVICE_PORT),
    2: _map("selector"),
    3: Field("clusterIP"),
    4: Field("type"),
    5: _list("externalIPs"),
    7: Field("sessionAffinity"),
    8: Field("loadBalancerIP"),
    9: _list("loadBalancerSourceRanges"),
    10: Field("externalName"),
    11: Field("externalTrafficPolicy"),
    12: _number("healthCheckNodePort"),
    13: Field("publishNotReadyAddresses", _flag),
    14: _part(
        "sessionAffinityConfig",
        {1: _part("clientIP", {1: _pointer("timeoutSeconds", as_number)})},
    ),
    17: _pointer("ipFamilyPolicy"),
    18: _list("clusterIPs"),
    19: _list("ipFamilies"),
    20: _pointer("allocateLoadBalancerNodePorts", _flag),
    21: _pointer("loadBalancerClass"),
    22: _pointer("internalTrafficPolicy"),
    23: _pointer("trafficDistribution"),
}
_SERVICE: Message = {
    1: _METADATA,
    2: _part("spec", _SERVICE_SPEC),
    3: _part("status", {1: _part("loadBalancer", {1: _list("ingress", _INGRESS)})}),
}
_SOURCE: Message = {1: Field("component"), 2: Field("host")}
_SERIES: Message = {1: _number("count"), 2: Field("lastObservedTime", _micro_time)}
_EVENT: Message = {
    1: _METADATA,
    2: _part("involvedObject", _REFERENCE),
    3: Field("reason"),
    4: Field("message"),
    5: _part("source", _SOURCE),
    6: Field("firstTimestamp", _time),
    7: Field("lastTimestamp", _time),
    8: _number("count"),
    9: Field("type"),
    10: Field("eventTime", _micro_time),
    11: _part("series", _SERIES),
    12: Field("action"),
    13: _part("related", _REFERENCE),
    14: Field("reportingComponent"),
    15: Field("reportingInstance"),
}
_NEW_EVENT: Message = {
    1: _METADATA,
    2: Field("eventTime", _micro_time),
    3: _part("series", _SERIES),
    4: Field("reportingController"),
    5: Field("reportingInstance"),
    6: Field("action"),
    7: Field("reason"),
    8: _part("regarding", _REFERENCE),
    9: _part("related", _REFERENCE),
    10: Field("note"),
    11: Field("type"),
    12: _part("deprecatedSource", _SOURCE),
    13: Field("deprecatedFirstTimestamp", _time),
    14: Field("deprecatedLastTimestamp", _time),
    15: _number("deprecatedCount"),
}
_LEASE_SPEC: Message = {
    1: _pointer("holderIdentity"),
    2: _pointer("leaseDurationSeconds", as_number),
    3: Field("acquireTime", _micro_time),
    4: Field("renewTime", _micro_time),
    5: _pointer("leaseTransitions", as_number),
    6: _pointer("strategy"),
    7: _pointer("preferredHolder"),
}
_RESOURCE_ATTRIBUTES: Message = {
    1: Field("namespace"),
    2: Field("verb"),
    3: Field("group"),
    4: Field("version"),
    5: Field("resource"),
    6: Field("subresource"),
    7: Field("name"),
}
_ACCESS_REVIEW: Message = {
    1: _METADATA,
    2: _part(
        "spec",
        {
            1: _part("resourceAttributes", _RESOURCE_ATTRIBUTES),
            2: _part("nonResourceAttributes", {1: Field("path"), 2: Field("verb")}),
        },
    ),
}
_TOKEN_REVIEW: Message = {
    1: _METADATA,
    2: _part("spec", {1: Field("token"), 2: _list("audiences")}),
}
_DELETE_OPTIONS: Message = {
    1: _pointer("gracePeriodSeconds", as_number),
    2: _part("preconditions", {1: _pointer("uid"), 2: _pointer("resourceVersion")}),
    3: _pointer("orphanDependents", _flag),
    4: _pointer("propagationPolicy"),
    5: _list("dryRun"),
}

KINDS: Mapping[tuple[str, str], Message] = {
    ("v1", "ConfigMap"): _CONFIG_MAP,
    ("v1", "Event"): _EVENT,
    ("v1", "Namespace"): _NAMESPACE,
    ("v1", "Secret"): _SECRET,
    ("v1", "Service"): _SERVICE,
    ("v1", "ServiceAccount"): _SERVICE_ACCOUNT,
    ("events.k8s.io/v1", "Event"): _NEW_EVENT,
    ("coordination.k8s.io/v1", "Lease"): {1: _METADATA, 2: _part("spec", _LEASE_SPEC)},
    ("authentication.k8s.io/v1", "SelfSubjectReview"): {1: _METADATA},
    ("authentication.k8s.io/v1", "TokenReview"): _TOKEN_REVIEW,
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): _ACCESS_REVIEW,
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): {
        1: _METADATA,
        2: _part("spec", {1: Field("namespace")}),
    },
    ("", "DeleteOptions"): _DELETE_OPTIONS,
}
"""(apiVersion, kind) → fields; DeleteOptions come under every apiVersion."""
