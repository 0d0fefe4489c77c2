"""Paths inside an object, as conversion rules name them: ``spec.a["odd.key"].items[name=*].b``.

``rules.py`` reads and writes values through them. ``[*]`` stands for every item of a list or every
value of a map; ``[key=*]`` does the same for a list whose items are identified by ``key``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import copy_json
from instar.tools.sdk.errors import ConverterDefinitionError

_TOKEN = re.compile(
    r"""\.?(?P<name>[^.\[\]"]+)        # a field
      | \[(?P<quoted>"(?:[^"\\]|\\.)*")\]  # a field whose name has dots
      | \[(?:(?P<key>[^\]="*]+)=)?\*\]     # every item
    """,
    re.VERBOSE,
)


class MissingPlace:
    """The absence of a value, as distinct from null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = MissingPlace()


@dataclass(frozen=True, slots=True)
class Each:
    """Every item; ``key`` is the field that identifies an item, empty for its position."""

    key: str = ""


@dataclass(frozen=True, slots=True)
class Path:
    """``scope`` ends in the last ``[*]`` (or is empty); ``fields`` is the rest, plain names."""

    text: str
    scope: tuple[str | Each, ...]
    fields: tuple[str, ...]


class _Item(NamedTuple):
    """One item of a list, identified by ``key``, or by its position if that is empty."""

    key: str
    value: Any

    def __str__(self) -> str:
        return f"[{self.key}={json.dumps(self.value)}]" if self.key else f"[{self.value}]"


class _Entry(str):
    """One value of a map."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"[{json.dumps(self)}]"


class Scope(NamedTuple):
    """One dict that a rule is applied to, and the path to it."""

    node: dict[str, Any]
    trail: tuple[str | _Item | _Entry, ...] = ()
    by_position: bool = False

    @property
    def where(self) -> str:
        """Return the path as text; computed on demand, because it is rarely needed."""
        text = ""
        for step in self.trail:
            text += f".{step}" if type(step) is str and text else str(step)
        return text


def parse_path(text: str) -> Path:
    steps: list[str | Each] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or (position == 0 and text[0] == "."):
            raise ConverterDefinitionError(f"{text!r} is not a path: see position {position + 1}")
        steps.append(_step(match))
        position = match.end()
    last = max((i for i, step in enumerate(steps) if isinstance(step, Each)), default=-1)
    fields = tuple(step for step in steps[last + 1 :] if isinstance(step, str))
    if not fields:
        raise ConverterDefinitionError(f"{text!r} is not a path: it names no field")
    return Path(text, tuple(steps[: last + 1]), fields)


def _step(match: re.Match[str]) -> str | Each:
    if match["name"] is not None:
        return match["name"]
    if match["quoted"] is not None:
        return str(json.loads(match["quoted"]))
    return Each(match["key"] or "")


def scopes(obj: dict[str, Any], steps: tuple[str | Each, ...]) -> Iterator[Scope]:
    """Yield every dict that ``steps`` lead to; none if the object has another shape."""
    return _walk(Scope(obj), obj, steps)


def _walk(here: Scope, node: Any, steps: tuple[str | Each, ...]) -> Iterator[Scope]:
    _, trail, by_position = here
    for at, step in enumerate(steps):
        if isinstance(step, Each):
            rest = steps[at + 1 :]
            for label, item in _items(node, step.key):
                unsure = type(label) is _Item and not label.key
                inner = Scope(item, (*trail, label), by_position or unsure)
                if rest:
                    yield from _walk(inner, item, rest)
                elif isinstance(item, dict):
                    yield inner
            return
        if not isinstance(node, dict) or step not in node:
            return
        node, trail = node[step], (*trail, step)


def _items(node: Any, key: str) -> Iterator[tuple[_Item | _Entry, Any]]:
    if isinstance(node, dict):
        for name, item in node.items():
            yield _Entry(name), item
    elif isinstance(node, list):
        for index, item in enumerate(node):
            identity = item.get(key) if key and isinstance(item, dict) else None
            yield _Item("", index) if identity is None else _Item(key, copy_json(identity)), item


def has(node: dict[str, Any], fields: tuple[str, ...]) -> bool:
    """Return whether ``fields`` lead to an object (no fields: the node itself)."""
    here: Any = node
    for name in fields:
        if not isinstance(here, dict) or name not in here:
            return False
        here = here[name]
    return isinstance(here, dict)


def pop(node: dict[str, Any], fields: tuple[str, ...], *, spare: int) -> Any:
    """Remove a value, and the containers that become empty, except the first ``spare``."""
    trail = [node]
    for name in fields[:-1]:
        inner = trail[-1].get(name)
        if not isinstance(inner, dict):
            return MISSING
        trail.append(inner)
    value = trail[-1].pop(fields[-1], MISSING)
    if value is not MISSING:
        for depth in range(len(trail) - 1, spare, -1):
            if trail[depth]:
                break
            del trail[depth - 1][fields[depth - 1]]
    return value


Fields = tuple[str, ...]
Take = Callable[[dict[str, Any]], list[Any]]
"""A node → the values of some fields, which are then no longer in it."""


def taker(wanted: Sequence[tuple[Fields, int]]) -> Take:
    """Return ``pop`` prepared for given fields and ``spare``, with a fast path for short paths."""
    if len(wanted) != 1 or len(wanted[0][0]) > 2:
        return lambda node: [pop(node, fields, spare=spare) for fields, spare in wanted]
    (fields, spare), last = wanted[0], wanted[0][0][-1]

    def take_below(node: dict[str, Any]) -> list[Any]:
        inner = node.get(fields[0])
        if not isinstance(inner, dict):
            return [MISSING]
        value = inner.pop(last, MISSING)
        if not (inner or spare or value is MISSING):
            del node[fields[0]]
        return [value]

    return take_below if len(fields) == 2 else lambda node: [node.pop(last, MISSING)]


class FoundPlace(NamedTuple):
    """A container whose state must be recorded, because the reverse conversion could not restore
    it: it was empty, or it was the first absent one.
    """

    fields: Fields
    was_there: bool


class Occupied(Exception):
    """The value cannot be stored: ``fields`` lead to an existing value, or through a non-object."""

    def __init__(self, fields: tuple[str, ...], problem: str) -> None:
        super().__init__(problem)
        self.fields = fields


Put = Callable[[dict[str, Any], Sequence[Any]], Sequence[FoundPlace]]
"""(node, values) → what was met on the way to their fields; what is ``MISSING`` is not put."""


def putter(wanted: Sequence[tuple[Fields, int]]) -> Put:
    """Return a function that stores values in their fields and creates containers. It returns the
    shared containers that it had to create, and others that were empty.
    """

    def put(node: dict[str, Any], values: Sequence[Any]) -> Sequence[FoundPlace]:
        told: list[FoundPlace] = []
        for (fields, shared), value in zip(wanted, values, strict=True):
            if value is MISSING:
                continue
            here = node if len(fields) == 1 else node.get(fields[0])
            if not here or len(fields) > 2 or not isinstance(here, dict):
                here = _container(node, fields, shared, told)
            if fields[-1] in here:
                raise Occupied(fields, "is already there and no rule says where it goes")
            here[fields[-1]] = value
        return told

    return put


def _container(node: dict[str, Any], fields: Fields, shared: int, told: list[FoundPlace]) -> Any:
    here, empty, made = node, None, None
    for depth, name in enumerate(fields[:-1], start=1):
        inner = here.get(name, MISSING)
        if inner is MISSING:
            inner = here[name] = {}
            made = made or fields[:depth]
        elif not isinstance(inner, dict):
            raise Occupied(fields[:depth], "is not an object, so nothing can be put inside it")
        elif not inner:
            empty = fields[:depth]
        here = inner
    if empty is not None and len(empty) > shared:
        told.append(FoundPlace(empty, was_there=True))
    if made is not None and len(made) <= shared:
        told.append(FoundPlace(made, was_there=False))
    return here


def join(where: str, fields: tuple[str, ...]) -> str:
    for name in fields:
        plain = re.fullmatch(r"[^.\[\]\"]+", name)
        step = name if plain else f"[{json.dumps(name)}]"
        where = f"{where}.{step}" if where and plain else f"{where}{step}"
    return where
