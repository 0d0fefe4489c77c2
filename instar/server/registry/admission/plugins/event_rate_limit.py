"""EventRateLimit plugin: limits Events per second by server, namespace, user or object.

The admission chain (``server/lifecycle/admission_setup.py``) calls it for each write. The plugin
protects the store from clients that repeat an Event endlessly. It is off unless enabled with a
configuration; configuration format and error texts are upstream's.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, NamedTuple

from instar.base.config_shapes import ShapeMismatch, unknown_fields
from instar.base.errors import TooManyRequests
from instar.base.field_errors import FieldError, child, index, invalid, not_supported
from instar.base.json_values import Object
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving

NAME = "EventRateLimit"
_TYPES = ("Namespace", "Server", "SourceAndObject", "User")
_API, _KIND = "eventratelimit.admission.k8s.io/v1alpha1", "Configuration"
_DEFAULT_CACHE_SIZE = 4096
_SHAPE: Any = {
    "apiVersion": str,
    "kind": str,
    "limits": [{"type": str, "qps": int, "burst": int, "cacheSize": int}],
}


class EventLimit(NamedTuple):
    type: str
    qps: int
    burst: int
    remembered: int = _DEFAULT_CACHE_SIZE
    """Number of keys with remembered buckets; the least recently used is dropped."""


class BadLimits(ValueError):
    """An invalid configuration; one line says what is wrong."""


def read_limits(document: Any) -> tuple[EventLimit, ...]:
    """Parse the plugin's configuration. Raises ``BadLimits``."""
    try:
        unknown = unknown_fields(document, _SHAPE)
    except ShapeMismatch as error:
        raise BadLimits(str(error)) from error
    if not isinstance(document, dict):
        raise BadLimits("no EventRateLimit config specified")
    if (document.get("apiVersion"), document.get("kind")) != (_API, _KIND):
        raise BadLimits(f"expected {_API}, {_KIND}")
    if unknown:
        raise BadLimits(f'strict decoding error: unknown field "{unknown[0]}"')
    limits = document.get("limits") or []
    found = [] if limits else [invalid("limits", limits, "must not be empty")]
    for position, limit in enumerate(limits):
        found += _errors(limit or {}, index("limits", position))
    if found:
        raise BadLimits("; ".join(map(str, found)))
    return tuple(
        EventLimit(
            each["type"], each["qps"], each["burst"], each.get("cacheSize") or _DEFAULT_CACHE_SIZE
        )
        for each in limits
    )


def _errors(limit: dict[str, Any], at: str) -> list[FieldError]:
    found = []
    for name in ("burst", "qps"):
        value = limit.get(name) or 0
        if value <= 0:
            found.append(invalid(child(at, name), value, "must be positive"))
    if (limit.get("cacheSize") or 0) < 0:
        found.append(invalid(child(at, "cacheSize"), limit["cacheSize"], "must not be negative"))
    if limit.get("type") not in _TYPES:
        found.append(not_supported(child(at, "type"), limit.get("type") or "", _TYPES))
    return found


class _Buckets:
    """Token buckets of one limit, by key."""

    def __init__(self, limit: EventLimit, clock: Callable[[], float]) -> None:
        self.limit, self._clock = limit, clock
        self._filled: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> bool:
        limit, now = self.limit, self._clock()
        tokens, last = self._filled.pop(key, (float(limit.burst), now))
        tokens = min(float(limit.burst), tokens + (now - last) * limit.qps)
        allowed = tokens >= 1
        self._filled[key] = (tokens - 1 if allowed else tokens, now)
        if len(self._filled) > limit.remembered:
            self._filled.popitem(last=False)
        return allowed


class EventRateLimit:
    def __init__(
        self, limits: Sequence[EventLimit], clock: Callable[[], float] = monotonic
    ) -> None:
        self._buckets = [_Buckets(limit, clock) for limit in limits]

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        ours = (serving.group, serving.plural) == ("", "events")
        return PluginPhases.VALIDATE if ours else PluginPhases.NONE

    def admit(self, operation: Operation) -> None:
        return

    def validate(self, operation: Operation) -> None:
        obj = operation.obj
        if operation.dry_run or obj is None or operation.verb not in (Verb.CREATE, Verb.UPDATE):
            return
        refused = []
        for buckets in self._buckets:
            kind = buckets.limit.type
            key = _key(kind, operation, obj)
            if not buckets.take(key):
                refused.append(f"limit reached on type {kind} for key {key}")
        if refused:
            told = refused[0] if len(refused) == 1 else f"[{', '.join(refused)}]"
            raise TooManyRequests(f"Too many requests: {told}")


def _key(kind: str, operation: Operation, obj: Object) -> str:
    if kind == "Server":
        return ""
    if kind == "Namespace":
        return operation.target.namespace
    if kind == "User":
        return operation.asked.user.name
    source, about = obj.get("source") or {}, obj.get("involvedObject") or {}
    names = ("kind", "namespace", "name", "uid", "apiVersion")
    parts = [source.get("component"), source.get("host"), *(about.get(name) for name in names)]
    return "".join(str(part) for part in parts if part)
