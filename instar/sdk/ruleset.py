"""Runs the rules of one pair of versions: in order on the way there, in reverse on the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from instar.sdk.ledger import Ledger, canonical, digest
from instar.sdk.paths import MISSING, Path, Scope, has, join, pop, put, scopes
from instar.sdk.rules import Change, Rule, Unfit


@dataclass(frozen=True, slots=True)
class Loss:
    """A field of ``version`` whose value is allowed to disappear, and why."""

    version: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class RuleSet:
    old: str
    new: str
    rules: tuple[Rule, ...]

    def there(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Changes ``obj``, which is at the old version, into the new one."""
        ledger = Ledger(obj, leaving=self.old, entering=self.new)
        for rule in self.rules:
            _apply(_Direction(rule, rule.old, rule.new, rule.there, rule.back), obj, ledger)
        ledger.close(obj)
        return obj

    def back(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Changes ``obj``, which is at the new version, into the old one."""
        ledger = Ledger(obj, leaving=self.new, entering=self.old)
        for rule in reversed(self.rules):
            _apply(_Direction(rule, rule.new, rule.old, rule.back, rule.there), obj, ledger)
        ledger.close(obj)
        return obj

    def losses(self) -> list[Loss]:
        found = []
        for rule in self.rules:
            if not rule.remembers:
                found += [Loss(self.old, path.text, rule.reason) for path in rule.old]
                found += [Loss(self.new, path.text, rule.reason) for path in rule.new]
        return found


@dataclass(frozen=True, slots=True)
class _Direction:
    rule: Rule
    source: tuple[Path, ...]
    target: tuple[Path, ...]
    change: Change
    inverse: Change


def _apply(way: _Direction, obj: dict[str, Any], ledger: Ledger) -> None:
    steps = (way.source or way.target)[0].scope
    for scope in scopes(obj, steps) if steps else (Scope(obj, "", False),):
        if not way.rule.anchored or _anchored(way, scope):
            _apply_in(way, scope, ledger)


def _anchored(way: _Direction, scope: Scope) -> bool:
    return all(has(scope.node, path.fields[:-1]) for path in (*way.source, *way.target))


def _apply_in(way: _Direction, scope: Scope, ledger: Ledger) -> None:
    before = digest(scope.node) if scope.by_position else ""
    # A field without a counterpart leaves its container behind: the other version has it too.
    tidy = bool(way.source and way.target)
    values = [pop(scope.node, path.fields, tidy=tidy) for path in way.source]
    if tidy:
        _restore_empty(way.source, values, scope, ledger)
    results = None
    if way.rule.remembers and not way.rule.exact:
        seen = before or _digest(values)
        results = ledger.give_back(_place(scope, way.target), _names(way.target), seen)
    if results is None:
        results = _run(way.change, values, len(way.target))
    for path, value in zip(way.target, results, strict=True):
        if value is not MISSING:
            empty = put(scope.node, path.fields, value, scope.where)
            if empty is not None and tidy:
                ledger.keep_empty(join(scope.where, empty))
    if way.rule.remembers and not way.rule.exact:
        _remember(way, scope, ledger, values, results)


def _restore_empty(
    source: tuple[Path, ...], values: Sequence[Any], scope: Scope, ledger: Ledger
) -> None:
    for path, value in zip(source, values, strict=True):
        if value is MISSING:
            continue
        for depth in range(1, len(path.fields)):
            container = path.fields[:depth]
            if ledger.was_empty(join(scope.where, container)) and not has(scope.node, container):
                put(scope.node, container, {}, scope.where)


def _remember(
    way: _Direction, scope: Scope, ledger: Ledger, values: list[Any], results: list[Any]
) -> None:
    if _same(_run(way.inverse, results, len(values)), values):
        return
    kept = {
        path.text: value
        for path, value in zip(way.source, values, strict=True)
        if value is not MISSING
    }
    seen = digest(scope.node) if scope.by_position else _digest(results)
    ledger.keep(_place(scope, way.source), kept, seen)


def _run(change: Change, values: Sequence[Any], expected: int) -> list[Any]:
    if values and all(value is MISSING for value in values):
        return [MISSING] * expected
    try:
        return change(values)
    except Unfit:
        return [MISSING] * expected


def _same(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return _canonical(left) == _canonical(right)


def _canonical(values: Sequence[Any]) -> bytes:
    return canonical([[] if value is MISSING else [value] for value in values])


def _digest(values: Sequence[Any]) -> str:
    return digest([[] if value is MISSING else [value] for value in values])


def _place(scope: Scope, paths: tuple[Path, ...]) -> str:
    return ", ".join(join(scope.where, path.fields) for path in paths)


def _names(paths: tuple[Path, ...]) -> list[str]:
    return [path.text for path in paths]
