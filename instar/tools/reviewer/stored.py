"""Tries real objects under the new CRD: reads, converts, validates and prunes them one by one.

``reviewing.py`` calls it. Reading prunes and defaults and never validates; writing an unchanged
object back is ratcheted. So the damage to an object is *unreadable*, *pruned*, *invalid* (even an
unchanged write is refused), *frozen* (kept, but edits there and re-creation are refused) or
*changed*. Problems that an object has under the old CRD too are not reported. The function that
converts is passed in; nothing here does I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from instar.base.field_errors import FieldError, FieldErrorCode
from instar.base.json_values import Object, copy_json, same_json
from instar.kube.api.names import parse_group_version
from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.offline_requests import as_new
from instar.kube.schema.pipeline import SchemaPipeline
from instar.kube.schema.rule_engine import RuleCompiler, no_rules
from instar.tools.reviewer.report import Damage, Finding, Severity, StoredObject
from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.rules import BY_ID

Convert = Callable[[list[Object], str], list[Object]]
"""Converts objects of one version to another ``group/version``; raises ``Unconvertible``."""

_MOST_REASONS = 6


class _ObjectDamage(NamedTuple):
    """One damage to one object."""

    damage: Damage
    text: str
    path: str = ""
    """The lost path, if any."""


class Unconvertible(Exception):
    """A converter refused or failed; ``str()`` is the reason."""


def convert_none(objects: list[Object], api_version: str) -> list[Object]:
    """Convert by strategy None: only ``apiVersion`` changes."""
    return [{**copy_json(item), "apiVersion": api_version} for item in objects]


class Trial:
    """Tries objects under one pair of CRDs."""

    def __init__(
        self,
        old: ReviewedCrd | None,
        new: ReviewedCrd,
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
        """Return the damaged objects only, worst first."""
        found = [outcome for obj in objects if (outcome := self._one(obj)) is not None]
        return sorted(found, key=lambda item: (item.damage.rank, item.name))

    def _pipeline(self, side: ReviewedCrd, version: str) -> SchemaPipeline:
        return side.pipeline(version, self._compile_rules)

    def _one(self, obj: Object) -> StoredObject | None:
        version = parse_group_version(obj["apiVersion"]).version
        seen: list[_ObjectDamage] = []
        if self._new.crd.version(version) is None:
            text = f"its version {version} is not in the new CRD"
            seen.append(_ObjectDamage(Damage.UNREADABLE, text))
            return _outcome(obj, version, seen)
        read = self._read(obj, version, seen)
        self._defaults(obj, read, version, seen)
        self._at_others(read, version, seen)
        return _outcome(obj, version, seen) if seen else None

    def _read(self, obj: Object, version: str, seen: list[_ObjectDamage]) -> Object:
        """Return the object as the new CRD reads it at its own version."""
        read: Object = copy_json(obj)
        lost = self._pipeline(self._new, version).from_storage(read)
        known = set()
        if self._old is not None and self._old.crd.version(version) is not None:
            known = set(self._pipeline(self._old, version).from_storage(copy_json(obj)))
        seen += [
            _ObjectDamage(Damage.PRUNED, f"{path} is dropped", path)
            for path in lost
            if path not in known
        ]
        return read

    def _defaults(self, obj: Object, read: Object, version: str, seen: list[_ObjectDamage]) -> None:
        if self._old is None or self._old.crd.version(version) is None:
            return
        before = copy_json(obj)
        self._pipeline(self._old, version).from_storage(before)
        lost = tuple(item.path for item in seen if item.damage is Damage.PRUNED)
        seen += [
            _ObjectDamage(Damage.CHANGED, f"{path} reads differently")
            for path in _differing("", before, read)
            if not path.startswith(lost)
        ]

    def _at_others(self, read: Object, version: str, seen: list[_ObjectDamage]) -> None:
        """Check the object as a write at the storage version; at served versions only losses
        count.
        """
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
                seen += [
                    _ObjectDamage(Damage.PRUNED, f"{path} is lost at {target}", path)
                    for path in lost
                ]
            if target in (storage, version):
                _judged(pipeline, converted, seen, self._known(converted, target))

    def _known(self, obj: Object, version: str) -> list[FieldError]:
        """Return what the old CRD already reports as wrong."""
        if self._old is None or self._old.crd.version(version) is None:
            return []
        pipeline = self._pipeline(self._old, version)
        before: Object = {**copy_json(obj), "kind": pipeline.kind}
        pipeline.from_storage(before)
        return pipeline.check_create(as_new(before))

    def _converted(
        self, read: Object, version: str, target: str, seen: list[_ObjectDamage]
    ) -> Object | None:
        mine: Object = copy_json(read)
        if target == version:
            return mine
        try:
            return self._convert([mine], f"{self._new.crd.group}/{target}")[0]
        except Unconvertible as error:
            seen.append(_ObjectDamage(Damage.UNREADABLE, f"conversion to {target} failed: {error}"))
            return None


def _judged(
    pipeline: SchemaPipeline, obj: Object, seen: list[_ObjectDamage], known: list[FieldError]
) -> None:
    never = pipeline.check_update(obj, copy_json(obj))
    anew = [error for error in pipeline.check_create(as_new(obj)) if error not in never]
    for damage, errors in ((Damage.INVALID, never), (Damage.FROZEN, anew)):
        seen += [_ObjectDamage(damage, str(error)) for error in errors if _counts(error, known)]


def _counts(error: FieldError, known: list[FieldError]) -> bool:
    """Return whether an error is relevant; the note that rules were skipped because of another
    error is not.
    """
    return error not in known and error.code is not FieldErrorCode.RULES_SKIPPED


def _outcome(obj: Object, version: str, seen: list[_ObjectDamage]) -> StoredObject:
    ordered = sorted(seen, key=lambda item: item.damage.rank)
    worst = ordered[0].damage
    reasons = tuple(dict.fromkeys(item.text for item in ordered))
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
    """Return one finding for all objects of a CRD: an error as soon as data is lost or frozen."""
    broken = [item for item in stored if item.breaks]
    if not broken:
        return None
    lost = [item for item in broken if item.damage is not Damage.FROZEN]
    rule = BY_ID["stored-objects-break"]
    counted = Counter(item.damage for item in broken)
    outcomes = ", ".join(f"{counted[kind]} {kind}" for kind in Damage if counted[kind])
    return Finding(
        rule=rule.id,
        severity=rule.severity if lost else Severity.WARNING,
        crd=name,
        message=f"{len(broken)} of {tried} stored objects would break: {outcomes}",
        hits=rule.hits,
        details="\n".join(f"{item.name}: {item.reasons[0]}" for item in broken[:_MOST_REASONS]),
    )
