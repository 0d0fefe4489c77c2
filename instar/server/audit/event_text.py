"""Text of audit events: kube-apiserver's JSON, or its legacy lines.

The sinks (``sinks.py``) call it in a thread, so that bodies are encoded outside the event loop. No
I/O here.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import orjson

from instar.base.field_errors import go_quote
from instar.kube.access.attributes import User
from instar.kube.api.encoding.go_yaml_scalars import YamlError
from instar.kube.api.encoding.json_text import TooDeep
from instar.kube.api.encoding.yaml_text import read_yaml
from instar.kube.protobuf.envelope import decode_object
from instar.kube.protobuf.errors import ProtobufError, UnknownKind
from instar.server.audit.policy import AuditLevel, AuditStage
from instar.server.audit.request_record import AuditEvent, RecordedBody, RequestRecord

_HEAD = {"kind": "Event", "apiVersion": "audit.k8s.io/v1"}
_DELETES = ("delete", "deletecollection")
_DELETE_OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1"}
_TRUNCATED = "audit.k8s.io/truncated"
_ESCAPES = (
    (b"&", b"\\u0026"),
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def json_line(event: AuditEvent, *, typed: bool = True, most: int = 0) -> bytes | None:
    """Return one event as JSON, without a newline. ``typed``: with apiVersion and kind, which items
    of a list lack. An event of more than ``most`` bytes (0: any) is written without its objects;
    None if it is still too large."""
    line = _dumps(document(event), typed)
    return short_line(event, typed=typed, most=most) if most and len(line) > most else line


def short_line(event: AuditEvent, *, typed: bool = True, most: int = 0) -> bytes | None:
    """Return the line without its objects, marked as truncated: for an event that is too large,
    or with objects that cannot be encoded."""
    short = document(event, objects=False)
    short["annotations"] = dict(sorted({**event.annotations, _TRUNCATED: "true"}.items()))
    line = _dumps(short, typed)
    return None if most and len(line) > most else line


def event_list(lines: list[bytes]) -> bytes:
    """Join encoded events to one ``EventList``, the body of a webhook call."""
    items = b",".join(lines)
    return b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[%b]}' % items


def _dumps(value: dict[str, Any], typed: bool) -> bytes:
    line = orjson.dumps({**_HEAD, **value} if typed else value)
    for plain, escaped in _ESCAPES:
        if plain in line:
            line = line.replace(plain, escaped)
    return line


def document(event: AuditEvent, *, objects: bool = True) -> dict[str, Any]:
    """Return an event as plain values, in kube-apiserver's format."""
    trail = event.trail
    found: dict[str, Any] = {
        "level": trail.level.text,
        "auditID": trail.id,
        "stage": event.stage.value,
        "requestURI": trail.uri,
        "verb": trail.asked.verb,
        "user": _user(trail.asked.user) if trail.authenticated else {},
    }
    # The request may have changed before the event is written: use what the event recorded.
    early = event.stage is AuditStage.RECEIVED
    if trail.impersonated is not None and not early:
        found["impersonatedUser"] = _user(trail.impersonated)
        if trail.constraint:
            found["authenticationMetadata"] = {"impersonationConstraint": trail.constraint}
    if trail.sources:
        found["sourceIPs"] = trail.sources
    if trail.agent:
        found["userAgent"] = trail.agent
    if trail.asked.resource:
        found["objectRef"] = _reference(trail, {} if early else trail.about)
    if event.status is not None:
        found["responseStatus"] = {"metadata": {}, **_status(event)}
    if objects:
        found |= _objects(event)
    found["requestReceivedTimestamp"] = moment(trail.received)
    found["stageTimestamp"] = moment(event.when)
    if event.annotations:
        found["annotations"] = dict(sorted(event.annotations.items()))
    return found


def moment(seconds: float) -> str:
    """Return a time as ``metav1.MicroTime`` is written."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:26] + "Z"


def _user(user: User) -> dict[str, Any]:
    found: dict[str, Any] = {"username": user.name}
    if user.uid:
        found["uid"] = user.uid
    if user.groups:
        found["groups"] = user.groups
    if user.extra:
        found["extra"] = {name: list(values) for name, values in user.extra.items()}
    return found


def _reference(trail: RequestRecord, about: dict[str, str]) -> dict[str, str]:
    asked = trail.asked
    found = {
        "resource": asked.resource,
        "namespace": asked.namespace or about.get("namespace", ""),
        "name": asked.name or about.get("name", ""),
        "uid": about.get("uid", ""),
        "apiGroup": asked.group,
        "apiVersion": asked.version,
        "resourceVersion": about.get("resourceVersion", ""),
        "subresource": asked.subresource,
    }
    return {name: value for name, value in found.items() if value}


def _status(event: AuditEvent) -> dict[str, Any]:
    """Return the members of a Status, or only the code of another body."""
    status = event.status or {}
    names = ("status", "message", "reason", "details", "code")
    return {name: status[name] for name in names if status.get(name)}


def _objects(event: AuditEvent) -> dict[str, Any]:
    trail, found = event.trail, dict[str, Any]()
    if event.stage is AuditStage.RECEIVED:
        return found
    asked = _request_object(trail)
    if asked is not None:
        found["requestObject"] = _fragment(asked)
    if event.response is not None:
        answered = _content(event.response, trail.decision.bare)
        if answered is not None:
            found["responseObject"] = _fragment(answered)
    return found


def _fragment(value: Any) -> orjson.Fragment:
    """Return JSON text that stays as it is, however deep it is."""
    if isinstance(value, orjson.Fragment):
        return value
    try:
        return orjson.Fragment(orjson.dumps(value))
    except TypeError:  # an object as deep as a body may be, within a list or managedFields
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return orjson.Fragment(text.encode())


def _request_object(trail: RequestRecord) -> Any:
    if trail.level < AuditLevel.REQUEST:
        return None
    if trail.body is not None:
        return _as_json(trail.body, trail.decision.bare)
    if trail.raw is None:
        return None
    if trail.asked.verb in _DELETES:
        options = _content(trail.raw, bare=False, whole=True)
        return {**_DELETE_OPTIONS, **options} if isinstance(options, dict) else None
    return _content(trail.raw, trail.decision.bare)


def _content(sent: RecordedBody, bare: bool, whole: bool = False) -> Any:
    """A body as JSON; None if it cannot be parsed. ``whole``: as a decoded value."""
    data = b"".join(sent.chunks).strip(b"\n")
    if sent.media.endswith("json"):
        return _as_json(data, bare, whole)
    try:
        if sent.media.endswith("yaml"):
            value, _ = read_yaml(data)
        elif sent.media == "application/vnd.kubernetes.protobuf":
            value = decode_object(data)
        else:
            return None
    except (YamlError, TooDeep, ProtobufError, UnknownKind):
        return None
    return _without_managed_fields(value) if bare else value


def _as_json(data: bytes, bare: bool, whole: bool = False) -> Any:
    """JSON text on one line, unchanged where possible."""
    if not bare and not whole and b"\n" not in data:
        return orjson.Fragment(data) if _is_json(data) else None
    try:
        value = orjson.loads(data)
    except ValueError:
        return None
    return _without_managed_fields(value) if bare else value


def _is_json(data: bytes) -> bool:
    """Return whether the bytes are JSON; other bytes would make the whole line invalid."""
    try:
        orjson.loads(data)
    except ValueError:
        return False
    return True


def _without_managed_fields(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    items = value.get("items")
    if isinstance(items, list):
        value = {**value, "items": [_without_managed_fields(item) for item in items]}
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and "managedFields" in metadata:
        kept = {name: part for name, part in metadata.items() if name != "managedFields"}
        value = {**value, "metadata": kept}
    return value


def legacy_line(event: AuditEvent) -> bytes:
    """The event in kube-apiserver's legacy format."""
    trail = event.trail
    asked, user = trail.asked, trail.asked.user
    other = trail.impersonated
    response = "<deferred>" if event.status is None else str(event.status.get("code", ""))
    parts = {
        "id": trail.id,
        "stage": event.stage.value,
        "ip": ", ".join(trail.sources) or "<unknown>",
        "method": asked.verb,
        "user": user.name if trail.authenticated else "<none>",
        "groups": ",".join(map(go_quote, user.groups)) if trail.authenticated else "<none>",
        "as": other.name if other is not None else "<self>",
        "asgroups": ",".join(map(go_quote, other.groups)) if other is not None else "<lookup>",
        "user-agent": trail.agent,
        "namespace": asked.namespace or "<none>",
        "uri": trail.uri,
        "response": response,
    }
    told = " ".join(f"{name}={go_quote(value)}" for name, value in parts.items())
    return f"{moment(event.when)} AUDIT: {told}".encode()
