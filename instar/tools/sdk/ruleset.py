"""Applies the declarative rules of one pair of versions: in order forwards, in reverse order
backwards.

``converter.py`` calls it for pairs that are defined by rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.tools.sdk.errors import ConversionError
from instar.tools.sdk.kept_values import PREFIX, KeptValues, canonical, digest
from instar.tools.sdk.paths import (
    MISSING,
    Occupied,
    Path,
    Scope,
    has,
    join,
    pop,
    putter,
    scopes,
    taker,
)
from instar.tools.sdk.rules import Change, ConversionRule, NoCounterpart, reverse_rule


@dataclass(frozen=True, slots=True)
class Loss:
    """A field of ``version`` whose value may be lost, and why."""

    version: str
    path: str
    reason: str


class RuleSet:
    """The rules between ``old`` and ``new``, compiled once."""

    def __init__(self, old: str, new: str, rules: Sequence[ConversionRule]) -> None:
        self.old, self.new, self.rules = old, new, tuple(rules)
        self._forward = [_Direction(rule) for rule in self.rules]
        self._backward = [_Direction(reverse_rule(rule)) for rule in reversed(self.rules)]
        self._kept = (PREFIX + old, PREFIX + new)

    def there(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Convert ``obj`` in place from the old version to the new one."""
        return _convert(self._forward, obj, KeptValues(obj, *self._kept))

    def back(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Convert ``obj`` in place from the new version to the old one."""
        return _convert(self._backward, obj, KeptValues(obj, *reversed(self._kept)))

    @property
    def leaves_metadata_alone(self) -> bool:
        """Return whether no rule uses metadata; only the annotation of kept values may change."""
        return not any(
            (path.scope or path.fields)[0] == "metadata"
            for rule in self.rules
            for path in (*rule.old, *rule.new)
        )

    def losses(self) -> list[Loss]:
        found = []
        for rule in self.rules:
            if not rule.remembers:
                found += [Loss(self.old, path.text, rule.reason) for path in rule.old]
                found += [Loss(self.new, path.text, rule.reason) for path in rule.new]
        return found


class _Direction:
    """One rule in one direction."""

    __slots__ = (
        *("change", "forgetful", "inverse", "names", "order", "scope", "source", "tidy"),
        *("anchored", "put", "shared_source", "take", "target"),
    )

    def __init__(self, rule: ConversionRule) -> None:
        self.source, self.target = rule.old, rule.new
        self.anchored, self.order = rule.anchored, rule.order
        self.change, self.inverse = rule.there, rule.back
        self.forgetful = not rule.remembers, rule.exact_there or not rule.remembers
        """Whether there is nothing to keep for values that do not fit, and for values that do."""
        self.scope = (rule.old or rule.new)[0].scope
        self.names = [path.text for path in rule.new]
        # A field without a counterpart leaves its container behind: the other version has it too.
        self.tidy = bool(rule.old and rule.new)
        # So does one whose container holds the counterpart as well.
        self.shared_source = [_shared(path, rule.new) for path in rule.old]
        self.take = taker([(path.fields, _shared(path, rule.new)) for path in rule.old])
        self.put = putter([(path.fields, _shared(path, rule.old)) for path in rule.new])


def _shared(path: Path, others: tuple[Path, ...]) -> int:
    """Return how many of a path's containers both versions have, as far as this rule shows."""
    mine = path.fields[:-1]
    if not others:
        return len(mine)
    return max(_common(mine, other.fields[:-1]) for other in others)


def _common(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    length = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        length += 1
    return length


def _convert(ways: Sequence[_Direction], obj: dict[str, Any], ledger: KeptValues) -> dict[str, Any]:
    whole = (Scope(obj),)
    for way in ways:
        for scope in scopes(obj, way.scope) if way.scope else whole:
            if not way.anchored or _anchored(way, scope):
                try:
                    _apply(way, scope, ledger)
                except Occupied as error:
                    raise ConversionError(f"{join(scope.where, error.fields)} {error}") from None
    ledger.close(obj)
    return obj


def _anchored(way: _Direction, scope: Scope) -> bool:
    return all(has(scope.node, path.fields[:-1]) for path in (*way.source, *way.target))


def _apply(way: _Direction, scope: Scope, ledger: KeptValues) -> None:
    results = None
    if ledger.waiting:
        values, results = _given_back(way, scope, ledger)
    else:
        values = way.take(scope.node)
    fitted = False
    if results is None:
        results, fitted = _run(way.change, values, len(way.target))
        if ledger.waiting:
            results = _reordered(way, scope, ledger, results)
    for found in way.put(scope.node, results):
        ledger.keep_container(join(scope.where, found.fields), was_there=found.was_there)
    if not way.forgetful[fitted]:
        _remember(way, scope, ledger, values, results)


def _given_back(
    way: _Direction, scope: Scope, ledger: KeptValues
) -> tuple[list[Any], list[Any] | None]:
    """Return the removed values, and the values that were kept for their target if not stale."""
    before = digest(scope.node) if scope.by_position else ""
    values = [
        pop(scope.node, path.fields, spare=_spared(path, shared, scope, ledger))
        for path, shared in zip(way.source, way.shared_source, strict=True)
    ]
    if way.tidy:
        _restore_empty(way.source, values, scope, ledger)
    seen = before or _digest(values)
    return values, ledger.give_back(_place(scope, way.target), way.names, seen)


def _spared(path: Path, shared: int, scope: Scope, ledger: KeptValues) -> int:
    """Return how many containers to keep when they become empty: those that both versions have,
    unless a container was created only for a restored value, because then a client has removed it.
    """
    for depth in range(1, shared + 1):
        if ledger.was_absent(join(scope.where, path.fields[:depth])):
            return depth - 1
    return shared


def _reordered(way: _Direction, scope: Scope, ledger: KeptValues, results: list[Any]) -> list[Any]:
    if way.order is None or not isinstance(results[0], list):
        return results
    order = ledger.order(_place(scope, way.target))
    return results if order is None else way.order.apply(results, order)


def _restore_empty(
    source: tuple[Path, ...], values: Sequence[Any], scope: Scope, ledger: KeptValues
) -> None:
    for path, value in zip(source, values, strict=True):
        if value is MISSING:
            continue
        for depth in range(1, len(path.fields)):
            container = path.fields[:depth]
            if ledger.was_empty(join(scope.where, container)) and not has(scope.node, container):
                putter([(container, depth)])(scope.node, [{}])


def _remember(
    way: _Direction, scope: Scope, ledger: KeptValues, values: list[Any], results: list[Any]
) -> None:
    undone, fitted = _run(way.inverse, results, len(values))
    if _same(undone, values):
        return
    order = way.order
    if order is not None and fitted and isinstance(values[0], list):
        wanted = order.of(values)
        if _same(order.apply(undone, wanted), values):
            ledger.keep_order(_place(scope, way.source), wanted)
            return
    kept = {
        path.text: value
        for path, value in zip(way.source, values, strict=True)
        if value is not MISSING
    }
    seen = digest(scope.node) if scope.by_position else _digest(results)
    ledger.keep(_place(scope, way.source), kept, seen)


def _run(change: Change, values: Sequence[Any], expected: int) -> tuple[list[Any], bool]:
    """Return the results, and whether the other version can express the values."""
    for value in values:
        if value is not MISSING:
            break
    else:
        if values:
            return [MISSING] * expected, True
    try:
        return change(values), True
    except NoCounterpart:
        return [MISSING] * expected, False


def _same(left: Sequence[Any], right: Sequence[Any]) -> bool:
    for a, b in zip(left, right, strict=True):
        # Strings, the usual case, need no encoding to be compared exactly.
        if a is not b and not (type(a) is str and type(b) is str and a == b):
            return _canonical(left) == _canonical(right)
    return True


def _canonical(values: Sequence[Any]) -> bytes:
    return canonical([[] if value is MISSING else [value] for value in values])


def _digest(values: Sequence[Any]) -> str:
    return digest([[] if value is MISSING else [value] for value in values])


def _place(scope: Scope, paths: tuple[Path, ...]) -> str:
    return ", ".join(join(scope.where, path.fields) for path in paths)
