"""Redaction: replaces values that must not leave a cluster, in all places where the API stores
them. Pure.

``taking.py`` passes every object and audit event through it. Copies of a value (last applied
configuration, keys in managedFields, bodies in audit events) are replaced too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import orjson

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, copy_json
from instar.kube.apply.field_usage import ANY_ITEM, ANY_KEY
from instar.tools.migrator.versions.field_removal import steps_of
from instar.tools.snapshots.capture.pseudonyms import Pseudonyms

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_BODIES = ("requestObject", "responseObject")
_SECRET_PARTS = ("data", "stringData")


@dataclass(frozen=True)
class RedactedField:
    """A field to redact. An empty ``crd`` means objects of every kind."""

    crd: str
    path: str
    steps: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"{self.crd}={self.path}" if self.crd else self.path


def read_field(text: str) -> RedactedField:
    """Parse ``[CRD=]PATH``; raises ``ValueError``."""
    crd, equals, path = text.rpartition("=")
    if equals and not crd:
        raise ValueError(f"{text!r} names no CRD before =")
    return RedactedField(crd, path, tuple(steps_of(path)))


@dataclass(frozen=True)
class Redaction:
    """Which fields a snapshot replaces by pseudonyms."""

    pseudonyms: Pseudonyms
    fields: tuple[RedactedField, ...] = ()
    secrets: bool = True
    """Whether the values of Secrets are dropped."""

    def document(self) -> Object:
        """Return the description of the redaction for the manifest."""
        return {"fields": [each.text for each in self.fields], "secretData": self.secrets}

    def redact(self, obj: Object, resource: str) -> Object:
        """Return the object, or a copy with replaced values."""
        if self.secrets and obj.get("kind") == "Secret" and resource == "secrets":
            obj = _emptied(obj)
        steps = self._steps(resource)
        return _Pass(self.pseudonyms, steps).run(obj) if steps else obj

    def event(self, event: Object, resource: str) -> Object:
        """Redact an audit event about an object of the resource."""
        steps = self._steps(resource)
        if not steps:
            return event
        fresh: Object = {**event}
        for name in _BODIES:
            body = event.get(name)
            if isinstance(body, dict):
                fresh[name] = _Pass(self.pseudonyms, steps).run(body)
            elif isinstance(
                body, list
            ):  # a JSON Patch: all of its values are replaced, whatever path they have
                fresh[name] = [_patched(each, self.pseudonyms) for each in body]
        about = event.get("objectRef")
        hidden = [name for name in ("name", "namespace") if ("metadata", name) in steps]
        if hidden and isinstance(about, dict):
            fresh.pop("requestURI", None)
            fresh["objectRef"] = {
                name: self.pseudonyms.of(value) if name in hidden else value
                for name, value in about.items()
            }
        return fresh

    def _steps(self, resource: str) -> list[tuple[str, ...]]:
        return [each.steps for each in self.fields if each.crd in ("", resource)]


@dataclass
class _Pass:
    """Redaction of one object."""

    pseudonyms: Pseudonyms
    steps: Sequence[tuple[str, ...]]
    replaced: dict[str, str] = field(default_factory=dict)

    def run(self, obj: Object) -> Object:
        fresh: Object = copy_json(obj)
        for steps in self.steps:
            _at(fresh, steps, self._replace)
        metadata = fresh.get("metadata")
        if isinstance(metadata, dict):
            annotations = metadata.get("annotations")
            if isinstance(annotations, dict) and isinstance(annotations.get(_LAST_APPLIED), str):
                annotations[_LAST_APPLIED] = self._last_applied(annotations[_LAST_APPLIED])
            for entry in metadata.get("managedFields") or ():
                if (
                    self.replaced
                    and isinstance(entry, dict)
                    and isinstance(entry.get("fieldsV1"), dict)
                ):
                    entry["fieldsV1"] = self._renamed(entry["fieldsV1"])
        return fresh

    def _replace(self, value: Any) -> Any:
        fresh = self.pseudonyms.of(value)
        for before, after in _leaves(value, fresh):
            self.replaced[before] = after
        return fresh

    def _last_applied(self, text: str) -> str:
        try:
            applied = orjson.loads(text)
        except orjson.JSONDecodeError:
            return ""
        for steps in self.steps:
            _at(applied, steps, self._replace)
        return orjson.dumps(applied).decode()

    def _renamed(self, fields: Mapping[str, Any]) -> Object:
        """Replace values in managedFields paths, in which list items are identified by their
        values.
        """
        return {
            self._key(name): self._renamed(below) if isinstance(below, dict) else below
            for name, below in fields.items()
        }

    def _key(self, name: str) -> str:
        if name[:2] not in ("k:", "v:"):
            return name
        try:
            value = orjson.loads(name[2:])
        except orjson.JSONDecodeError:
            return name
        if isinstance(value, dict):
            value = {each: self._known(item) for each, item in value.items()}
        else:
            value = self._known(value)
        return name[:2] + orjson.dumps(value).decode()

    def _known(self, value: Any) -> Any:
        return self.replaced.get(value, value) if isinstance(value, str) else value


def _at(value: Any, steps: Sequence[str], change: Callable[[Any], Any]) -> None:
    """Replace the values at a path by the result of ``change``."""
    step, rest = steps[0], steps[1:]
    keys: Iterable[Any]
    if step == ANY_ITEM:
        keys = range(len(value)) if isinstance(value, list) else ()
    elif step == ANY_KEY:
        keys = list(value) if isinstance(value, dict) else ()
    else:
        keys = (step,) if isinstance(value, dict) and step in value else ()
    for key in keys:
        if rest:
            _at(value[key], rest, change)
        else:
            value[key] = change(value[key])


def _leaves(before: Any, after: Any) -> Iterable[tuple[str, str]]:
    if isinstance(before, str):
        yield before, after
    elif isinstance(before, dict):
        for name, item in before.items():
            yield from _leaves(item, after[name])
    elif isinstance(before, list):
        for one, other in zip(before, after, strict=True):
            yield from _leaves(one, other)


def _patched(operation: Any, pseudonyms: Pseudonyms) -> Any:
    if not isinstance(operation, dict) or "value" not in operation:
        return operation
    return {**operation, "value": pseudonyms.of(operation["value"])}


def _emptied(secret: Object) -> Object:
    """Remove the values of a Secret and their copies in last-applied annotations; keep its keys."""
    fresh: Object = {
        name: dict.fromkeys(value, "")
        if name in _SECRET_PARTS and isinstance(value, dict)
        else value
        for name, value in secret.items()
    }
    metadata = fresh.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("annotations"), dict):
        kept = {n: v for n, v in metadata["annotations"].items() if n != _LAST_APPLIED}
        fresh["metadata"] = {**metadata, "annotations": kept}
    return fresh
