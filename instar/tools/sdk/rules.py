"""Declarative conversion rules: one rule converts in both directions between two versions.

``ruleset.py`` applies them; authors write them through ``instar.sdk`` or ``conversion.yaml``
(``yaml_rules.py``). A rule takes some fields out of an object at one version and puts others in at
the other. A value that the other version cannot express exactly is kept in an annotation
(``kept_values.py``), so every rule is lossless by construction, except the rule ``lossy``, which
drops values.

``old`` and ``new`` are the first and second version of the pair a rule belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from instar.base.fast_dataclass import dataclass
from instar.tools.sdk.errors import ConversionError, ConverterDefinitionError
from instar.tools.sdk.kept_values import canonical
from instar.tools.sdk.paths import MISSING, Path, parse_path
from instar.tools.sdk.templates import Template

_INT64 = 2**63
Values = Sequence[Any]
Change = Callable[[Values], list[Any]]
Which = Literal["old", "new"]


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a list at the old version, which the new version cannot express.

    Far smaller than the list itself, and still good after an edit: items it does not know come
    last.
    """

    of: Callable[[Values], list[str]]
    apply: Callable[[Values, Sequence[str]], list[Any]]


class NoCounterpart(Exception):
    """The other version cannot express this value; it has to be kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionRule:
    """``there`` turns values at ``old`` into values at ``new``; ``back`` the other way.

    Neither is called when everything it would read is missing: a part of an object converts to
    a part of an object.
    """

    name: str
    old: tuple[Path, ...] = ()
    new: tuple[Path, ...] = ()
    there: Change
    back: Change
    exact_there: bool = False
    """``back`` undoes every result of ``there``, so only what is ``NoCounterpart`` needs
    keeping."""
    exact_back: bool = False
    """The same the other way round."""
    remembers: bool = True
    anchored: bool = False
    """Only where the object that holds the field is there."""
    reason: str = ""
    order: Order | None = None
    """For lists: what to keep instead of the values when only their order would be lost."""

    def __post_init__(self) -> None:
        if len({path.scope for path in (*self.old, *self.new)}) != 1:
            raise ConverterDefinitionError(
                f"{self.name}: its paths must name the same list in the same way"
            )


def move(old: str, new: str) -> ConversionRule:
    """The same value at another path: a rename, or a move into or out of an object."""
    return ConversionRule(
        name=f"move {old} → {new}",
        old=(parse_path(old),),
        new=(parse_path(new),),
        there=list,
        back=list,
        exact_there=True,
        exact_back=True,
    )


def wrap(path: str, field: str, *, side: Which = "new") -> ConversionRule:
    """``path: value`` on one side is ``path: {field: value}`` on the other (``side``)."""
    inner = f"{path}.{field}"
    return move(path, inner) if side == "new" else move(inner, path)


def split(
    path: str, template: str, *, unmatched: Literal["error", "keep"] = "error"
) -> ConversionRule:
    """A string at ``path`` in the old version, its parts in the new one.

    ``template`` is the string with ``{path}`` for each part: ``"{spec.host}:{spec.port:int}"``.
    After a colon comes ``int`` or a regular expression the part must match. A string the template
    does not fit is an error, or kept as it is when ``unmatched`` is ``"keep"``.
    """
    shape = Template(template)

    def there(values: Values) -> list[Any]:
        parts = shape.split(values[0])
        if parts is None and unmatched == "error":
            raise ConversionError(f"{path} could not be parsed as {shape.shown}")
        if parts is None:
            raise NoCounterpart
        return parts

    def back(values: Values) -> list[Any]:
        joined = shape.join(values)
        if joined is None:
            raise NoCounterpart
        return [joined]

    return ConversionRule(
        name=f"split {path} → {template}",
        old=(parse_path(path),),
        new=tuple(parse_path(part) for part in shape.names),
        there=there,
        back=back,
        exact_there=True,
    )


def join(
    template: str, path: str, *, unmatched: Literal["error", "keep"] = "error"
) -> ConversionRule:
    """``split`` the other way round: parts in the old version, one string in the new."""
    return reverse_rule(split(path, template, unmatched=unmatched))


def list_of_one(old: str, new: str) -> ConversionRule:
    """One value in the old version, a list in the new one; the old version shows the first item."""

    def back(values: Values) -> list[Any]:
        items = values[0]
        if not isinstance(items, list) or not items:
            raise NoCounterpart
        return [items[0]]

    return ConversionRule(
        name=f"list of one {old} → {new}",
        old=(parse_path(old),),
        new=(parse_path(new),),
        there=lambda values: [[values[0]]],
        back=back,
        exact_there=True,
    )


def enum(old: str, mapping: Mapping[Any, Any], new: str | None = None) -> ConversionRule:
    """Old value → new value; a value that is not listed stays the same."""
    forward = {canonical(source): target for source, target in mapping.items()}
    backward = {canonical(target): source for source, target in mapping.items()}
    if len(backward) != len(mapping):
        raise ConverterDefinitionError(f"enum {old}: two values map to the same one")
    return ConversionRule(
        name=f"enum {old}",
        old=(parse_path(old),),
        new=(parse_path(new or old),),
        there=lambda values: [forward.get(canonical(values[0]), values[0])],
        back=lambda values: [backward.get(canonical(values[0]), values[0])],
    )


def scale(old: str, new: str, factor: int | float | str) -> ConversionRule:
    """Another unit: new = old × ``factor``. A remainder is rounded down, and the value kept."""
    ratio = Fraction(factor).limit_denominator(10**12)
    if ratio <= 0:
        raise ConverterDefinitionError(f"scale {old}: the factor must be positive")
    return ConversionRule(
        name=f"scale {old} → {new} × {factor}",
        old=(parse_path(old),),
        new=(parse_path(new),),
        there=lambda values: [_scaled(values[0], ratio)],
        back=lambda values: [_scaled(values[0], 1 / ratio)],
    )


def _scaled(value: Any, ratio: Fraction) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NoCounterpart
    if isinstance(value, float):
        return float(Fraction(value) * ratio)
    scaled = int(value * ratio // 1)
    if not -_INT64 <= scaled < _INT64:
        raise NoCounterpart  # no API server takes a larger integer
    return scaled


def list_to_map(old: str, new: str, *, key: str) -> ConversionRule:
    """A list of objects identified by ``key`` in the old version, a map by that key in the new."""

    def there(values: Values) -> list[Any]:
        if not isinstance(values[0], list):
            raise NoCounterpart
        return [_by_key(old, values[0], key)]

    def back(values: Values) -> list[Any]:
        if not isinstance(values[0], dict):
            raise NoCounterpart
        return [[{key: name, **item} for name, item in sorted(_objects(values[0]))]]

    return ConversionRule(
        name=f"list to map {old} → {new} by {key}",
        old=(parse_path(old),),
        new=(parse_path(new),),
        there=there,
        back=back,
        order=Order(
            of=lambda values: [item[key] for item in values[0]],
            apply=lambda values, order: [_arranged(values[0], key, order)],
        ),
    )


def _arranged(items: list[Any], key: str, order: Sequence[str]) -> list[Any]:
    places = {name: place for place, name in enumerate(order)}
    return sorted(items, key=lambda item: places.get(item[key], len(places)))


def _by_key(path: str, items: list[Any], key: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for position, item in enumerate(items):
        name = item.get(key) if isinstance(item, dict) else None
        if not isinstance(name, str):
            raise ConversionError(f"{path}[{position}] has no {key!r} to file it under")
        if name in result:
            raise ConversionError(f"{path} has two items whose {key} is {name!r}")
        result[name] = {field: value for field, value in item.items() if field != key}
    return result


def _objects(items: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    if not all(isinstance(item, dict) for item in items.values()):
        raise NoCounterpart
    return list(items.items())


def map_to_list(old: str, new: str, *, key: str) -> ConversionRule:
    """``list_to_map`` the other way round."""
    return reverse_rule(list_to_map(new, old, key=key))


def constant(path: str, value: Any, *, side: Which = "new") -> ConversionRule:
    """A field that only one version has, with the value it gets when converted from the other.

    Added only where its parent object is there. Another value than this one is kept.
    """
    rule = ConversionRule(
        name=f"constant {path}",
        new=(parse_path(path),),
        there=lambda _: [value],
        back=lambda _: [],
        anchored=True,
    )
    return rule if side == "new" else reverse_rule(rule)


def keep(path: str, *, side: Which = "new") -> ConversionRule:
    """A field that only one version has: kept in an annotation while at the other version."""
    rule = ConversionRule(
        name=f"keep {path}",
        new=(parse_path(path),),
        there=lambda _: [MISSING],
        back=lambda _: [],
    )
    return rule if side == "new" else reverse_rule(rule)


def lossy(path: str, reason: str, *, side: Which = "new") -> ConversionRule:
    """A field that only one version has, dropped on purpose. ``instar check`` reports and allows
    it.
    """
    rule = ConversionRule(
        name=f"lossy {path}",
        new=(parse_path(path),),
        there=lambda _: [MISSING],
        back=lambda _: [],
        remembers=False,
        reason=reason or "declared without a reason",
    )
    return rule if side == "new" else reverse_rule(rule)


def reverse_rule(rule: ConversionRule) -> ConversionRule:
    """The same rule with old and new exchanged."""
    return ConversionRule(
        name=rule.name,
        old=rule.new,
        new=rule.old,
        there=rule.back,
        back=rule.there,
        exact_there=rule.exact_back,
        exact_back=rule.exact_there,
        remembers=rule.remembers,
        anchored=rule.anchored,
        reason=rule.reason,
        order=rule.order,
    )
