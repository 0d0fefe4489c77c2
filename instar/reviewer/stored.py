"""Real objects, tried one by one under the new CRD: read, converted, validated, pruned.

Reading prunes and defaults and never validates; writing back an unchanged object is forgiven
what it already had wrong. So an object is *unreadable*, *pruned*, *invalid* (even an unchanged
write is refused), *frozen* (kept, but edits there and re-creation are refused) or *changed*.
What the old CRD would have said too is left out. Conversion is handed in; nothing here does I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from instar.api.names import parse_group_version
from instar.fields import FieldError
from instar.plain import Object, copy_json
from instar.reviewer.report import Finding, Severity, StoredObject
from instar.reviewer.rules import BY_ID
from instar.reviewer.subject import Subject
from instar.schema.answers import as_new
from instar.schema.pipeline import RULES_SKIPPED, Pipeline
from instar.schema.rules import RuleCompiler, no_rules
from instar.schema.values import ABSENT, same_json

Convert = Callable[[list[Object], str], list[Object]]
"""Objects of one version to another ``group/version``; raises ``ConversionFailed``."""

_WORST = ("unreadable", "pruned", "invalid", "frozen", "changed")
_MOST_REASONS = 6


class ConversionFailed(Exception):
    """A converter refused or broke; ``str()`` says why."""


def convert_none(objects: list[Object], api_version: str) -> list[Object]:
    return [{**copy_json(item), "apiVersion": api_version} for item in objects]


class Trial:
    """One CRD pair."""

    def __init__(
        self,
        old: Subject | None,
        new: Subject,
        compile_rules: RuleCompiler | None = None,
        convert: Convert | None = None,
    ) -> None:
        self._old, self._new = old, new
        self._compile_rules = compile_rules or no_rules
        self._convert = convert or convert_none

    def belongs(self, obj: Any) -> bool:
        if not isinstance(obj, dict) or not isinstance(obj.get("apiVersion"), str):
            return False
        group = obj["apiVersion"].rpartition("/")[0]
        return group == self._new.crd.group and obj.get("kind") == self._new.crd.names.kind

    def run(self, objects: Iterable[Object]) -> list[StoredObject]:
        """Only those something happens to, worst first."""
        found = [outcome for obj in objects if (outcome := self._one(obj)) is not None]
        return sorted(found, key=lambda item: (_WORST.index(item.outcome), item.name))

    def _pipeline(self, subject: Subject, version: str) -> Pipeline:
        return subject.pipeline(version, self._compile_rules)

    def _one(self, obj: Object) -> StoredObject | None:
        version = parse_group_version(obj["apiVersion"]).version
        seen: list[tuple[str, str]] = []
        if self._new.crd.version(version) is None:
            seen.append(("unreadable", f"its version {version} is not in the new CRD"))
            return _outcome(obj, version, seen)
        read = self._read(obj, version, seen)
        self._defaults(obj, read, version, seen)
        self._at_others(read, version, seen)
        return _outcome(obj, version, seen) if seen else None

    def _read(self, obj: Object, version: str, seen: list[tuple[str, str]]) -> Object:
        """The object as the new CRD reads it at its own version."""
        read: Object = copy_json(obj)
        lost = self._pipeline(self._new, version).from_storage(read)
        known = set()
        if self._old is not None and self._old.crd.version(version) is not None:
            known = set(self._pipeline(self._old, version).from_storage(copy_json(obj)))
        seen += [("pruned", f"{path} is dropped") for path in lost if path not in known]
        return read

    def _defaults(
        self, obj: Object, read: Object, version: str, seen: list[tuple[str, str]]
    ) -> None:
        if self._old is None or self._old.crd.version(version) is None:
            return
        before = copy_json(obj)
        self._pipeline(self._old, version).from_storage(before)
        lost = {text.partition(" ")[0] for kind, text in seen if kind == "pruned"}
        seen += [
            ("changed", f"{path} reads differently")
            for path in _differing("", before, read)
            if not path.startswith(tuple(lost))
        ]

    def _at_others(self, read: Object, version: str, seen: list[tuple[str, str]]) -> None:
        """At the storage version it is judged as a write; at served ones only losses count."""
        storage = self._new.crd.storage_version()
        for target in dict.fromkeys([storage, *self._new.crd.served()]):
            if not target:
                continue
            converted = self._converted(read, version, target, seen)
            if converted is None:
                continue
            pipeline = self._pipeline(self._new, target)
            lost = pipeline.after_conversion(converted)
            pipeline.default(converted)
            if target != version:
                seen += [("pruned", f"{path} is lost at {target}") for path in lost]
            if target in (storage, version):
                _judged(pipeline, converted, seen, self._known(converted, target))

    def _known(self, obj: Object, version: str) -> set[str]:
        """What the old CRD would already have found wrong."""
        if self._old is None or self._old.crd.version(version) is None:
            return set()
        pipeline = self._pipeline(self._old, version)
        before: Object = {**copy_json(obj), "kind": pipeline.kind}
        pipeline.from_storage(before)
        return set(_texts(pipeline.check_create(as_new(before))))

    def _converted(
        self, read: Object, version: str, target: str, seen: list[tuple[str, str]]
    ) -> Object | None:
        mine: Object = copy_json(read)
        if target == version:
            return mine
        try:
            return self._convert([mine], f"{self._new.crd.group}/{target}")[0]
        except ConversionFailed as error:
            seen.append(("unreadable", f"conversion to {target} failed: {error}"))
            return None


def _judged(pipeline: Pipeline, obj: Object, seen: list[tuple[str, str]], known: set[str]) -> None:
    forgiven = _texts(pipeline.check_update(obj, copy_json(obj)))
    others = _texts(pipeline.check_create(as_new(obj)))
    seen += [("invalid", text) for text in forgiven if text not in known]
    seen += [("frozen", text) for text in others if text not in {*known, *forgiven}]


def _texts(errors: Iterable[FieldError]) -> list[str]:
    """Reasons only: that rules were left out because of them is none."""
    return [str(error) for error in errors if error is not RULES_SKIPPED]


def _outcome(obj: Object, version: str, seen: list[tuple[str, str]]) -> StoredObject:
    worst = min((kind for kind, _ in seen), key=_WORST.index)
    ordered = sorted(seen, key=lambda item: _WORST.index(item[0]))
    reasons = tuple(dict.fromkeys(text for _, text in ordered))
    metadata = obj.get("metadata") or {}
    name = "/".join(filter(None, (metadata.get("namespace"), metadata.get("name"))))
    return StoredObject(name or "(unnamed)", version, worst, reasons[:_MOST_REASONS])


def _differing(path: str, left: Any, right: Any) -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        return [
            found
            for name in sorted({*left, *right})
            for found in _differing(
                f"{path}.{name}".removeprefix("."), left.get(name, ABSENT), right.get(name, ABSENT)
            )
        ]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [
            found
            for position, (one, other) in enumerate(zip(left, right, strict=True))
            for found in _differing(f"{path}[{position}]", one, other)
        ]
    return [] if same_json(left, right) else [path]


def stored_finding(name: str, stored: Sequence[StoredObject], tried: int) -> Finding | None:
    """One finding for all of a CRD's objects: an error as soon as data is lost or locked up."""
    broken = [item for item in stored if item.outcome != "changed"]
    if not broken:
        return None
    lost = [item for item in broken if item.outcome != "frozen"]
    rule = BY_ID["stored-objects-break"]
    counted = Counter(item.outcome for item in broken)
    outcomes = ", ".join(f"{counted[kind]} {kind}" for kind in _WORST if counted[kind])
    return Finding(
        rule=rule.id,
        severity=rule.severity if lost else Severity.WARNING,
        crd=name,
        message=f"{len(broken)} of {tried} stored objects would break: {outcomes}",
        hits=rule.hits,
        details="\n".join(f"{item.name}: {item.reasons[0]}" for item in broken[:_MOST_REASONS]),
    )
