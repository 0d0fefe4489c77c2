"""Validates Events of the core group and of events.k8s.io; stored events are mostly immutable.

Called by ``server/registry/kinds/events.py``. Events of both groups are validated as core Events,
and error paths are core's, except for two that are named as in the request.
"""

from __future__ import annotations

from typing import Any

from instar.base.field_errors import FieldError, invalid, required
from instar.base.json_values import Object
from instar.kube.api.string_rules import qualified_name
from instar.kube.builtin_rules.basics import immutable_errors, texts_at
from instar.kube.builtin_rules.go_internal_text import internal

_LONGEST_NOTE, _LONGEST_WORD = 1024, 128
_IMMUTABLE_FIELDS: tuple[tuple[str, object], ...] = (
    ("involvedObject", {}), ("reason", ""), ("message", ""), ("source", {}),
    ("firstTimestamp", None), ("lastTimestamp", None), ("count", 0), ("reason", ""), ("type", ""),
    ("eventTime", None), ("action", ""), ("related", None), ("reportingComponent", ""),
    ("reportingInstance", ""),
)  # fmt: skip
"""Fields that cannot change, each with the value that stands for an absent one. Upstream checks
``reason`` twice."""
_UNSET: tuple[tuple[str, object], ...] = (
    ("firstTimestamp", None),
    ("lastTimestamp", None),
    ("count", 0),
    ("source", {}),
)


def event_errors(obj: Object, namespace: str, *, controller: str) -> list[FieldError]:
    """Return the errors, with core's field names. ``controller`` is the request version's name
    of ``reportingComponent``."""
    theirs = (obj.get("involvedObject") or {}).get("namespace", "")
    dated = bool(obj.get("eventTime"))
    if theirs:
        agrees = dated or theirs == namespace
    else:
        agrees = namespace in ("", "default", *(("kube-system",) if dated else ()))
    text = "does not match event.namespace"
    found = [] if agrees else [invalid("involvedObject.namespace", theirs, text)]
    return [*found, *_new_errors(obj, controller)] if dated else found


def _new_errors(obj: Object, controller: str) -> list[FieldError]:
    found: list[FieldError] = []
    reporter = obj.get("reportingComponent", "")
    if not reporter:
        found.append(required(controller))
    found += texts_at(controller, reporter, qualified_name(reporter))
    for name in ("reportingInstance", "action", "reason"):
        value = obj.get(name, "")
        if not value:
            found.append(required(name))
        elif len(value) > _LONGEST_WORD:
            found.append(invalid(name, "", f"can have at most {_LONGEST_WORD} characters"))
    return found


def new_event_errors(obj: Object) -> list[FieldError]:
    """Return the errors of the additional rules of events.k8s.io."""
    found: list[FieldError] = []
    if not obj.get("eventTime"):
        found.append(required("eventTime"))
    if obj.get("type") not in ("Normal", "Warning"):
        found.append(invalid("type", "", f"has invalid value: {obj.get('type', '')}"))
    if len(obj.get("message", "").encode()) > _LONGEST_NOTE:
        found.append(invalid("message", "", f"can have at most {_LONGEST_NOTE} characters"))
    for name, empty in _UNSET:
        if obj.get(name) not in (None, empty):
            found.append(invalid(name, "", "needs to be unset"))
    return found


def series_errors(obj: Object) -> list[FieldError]:
    series = obj.get("series")
    if series is None:
        return []
    found: list[FieldError] = []
    if series.get("count", 0) < 2:
        found.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        found.append(required("series.lastObservedTime"))
    return found


def event_change_errors(new: Object, old: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for name, empty in _IMMUTABLE_FIELDS:
        after, before = new.get(name) or empty, old.get(name) or empty
        place = "reportingController" if name == "reportingComponent" else name
        found += immutable_errors(after, before, place, _go_value(name, after))
    return found


def _go_value(name: str, value: Any) -> Any:
    message = {"involvedObject": "ObjectReference", "related": "ObjectReference"}.get(name, "")
    message = "EventSource" if name == "source" else message
    return internal(message, value) if message else value
