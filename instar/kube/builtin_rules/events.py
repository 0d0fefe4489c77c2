"""Validates Events of the core group and of events.k8s.io; stored events are mostly immutable.

Called by ``server/registry/kinds/events.py``. Both versions are validated in the core form with its
paths; only two paths use the request's form.
"""

from __future__ import annotations

from instar.base.field_errors import FieldError, invalid, required
from instar.base.json_values import Object
from instar.kube.api.string_rules import qualified_name
from instar.kube.builtin_rules.basics import immutable_errors, texts_at

_LONGEST_NOTE, _LONGEST_WORD = 1024, 128
_FROZEN = ("involvedObject", "reason", "reason", "action", "related", "message", "type")
"""Upstream checks one of them twice."""
_UNSET: tuple[tuple[str, object], ...] = (
    ("firstTimestamp", None),
    ("lastTimestamp", None),
    ("count", 0),
    ("source", {}),
)


def event_errors(obj: Object, namespace: str, *, controller: str) -> list[FieldError]:
    """Return the errors, with core's field names. ``controller`` is the request version's name
    of ``reportingComponent``."""
    about = obj.get("involvedObject") or {}
    found: list[FieldError] = []
    theirs = about.get("namespace", "")
    if controller == "reportingComponent" and theirs and theirs != namespace:
        text = "does not match event.namespace"
        found.append(invalid("involvedObject.namespace", theirs, text))
    if obj.get("eventTime"):
        found += _new_errors(obj, controller)
    return found


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
    if not old.get("eventTime"):
        return []
    found: list[FieldError] = []
    for name in _FROZEN:
        found += immutable_errors(new.get(name), old.get(name), name)
    return found
