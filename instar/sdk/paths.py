"""Places inside an object, as rules name them: ``spec.a["odd.key"].items[name=*].b``.

``[*]`` stands for every item of a list or every value of a map; ``[key=*]`` does the same for a
list whose items are told apart by ``key``. Knows plain dicts and lists only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from instar.records import dataclass
from instar.sdk.errors import ConversionError, ConverterDefinitionError

_TOKEN = re.compile(
    r"""\.?(?P<name>[^.\[\]"]+)        # a field
      | \[(?P<quoted>"(?:[^"\\]|\\.)*")\]  # a field whose name has dots
      | \[(?:(?P<key>[^\]="*]+)=)?\*\]     # every item
    """,
    re.VERBOSE,
)


class Missing:
    """No value at all, which JSON's null is not."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


@dataclass(frozen=True, slots=True)
class Each:
    """Every item; ``key`` names the field that identifies one, empty for its position."""

    key: str = ""


@dataclass(frozen=True, slots=True)
class Path:
    """``scope`` ends in the last ``[*]`` (or is empty); ``fields`` is the rest, plain names."""

    text: str
    scope: tuple[str | Each, ...]
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """One dict a rule works in, and how to find it again: ``where`` names it in messages."""

    node: dict[str, Any]
    where: str
    by_position: bool


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
    """Every dict ``steps`` leads to; where the shape is another one there is simply none."""
    yield from _walk(obj, steps, "", False)


def _walk(
    node: Any, steps: tuple[str | Each, ...], where: str, by_position: bool
) -> Iterator[Scope]:
    if not steps:
        if isinstance(node, dict):
            yield Scope(node, where, by_position)
        return
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        if isinstance(node, dict) and step in node:
            yield from _walk(node[step], rest, f"{where}.{step}" if where else step, by_position)
    elif isinstance(node, dict):
        for name, item in node.items():
            yield from _walk(item, rest, f"{where}[{json.dumps(name)}]", by_position)
    elif isinstance(node, list):
        for index, item in enumerate(node):
            identity = item.get(step.key) if step.key and isinstance(item, dict) else None
            known = identity is not None
            label = f"{step.key}={json.dumps(identity)}" if known else str(index)
            yield from _walk(item, rest, f"{where}[{label}]", by_position or not known)


def has(node: dict[str, Any], fields: tuple[str, ...]) -> bool:
    """Whether ``fields`` leads to an object (no fields: the node itself)."""
    here: Any = node
    for name in fields:
        if not isinstance(here, dict) or name not in here:
            return False
        here = here[name]
    return isinstance(here, dict)


def pop(node: dict[str, Any], fields: tuple[str, ...], *, spare: int) -> Any:
    """Take a value out, and the containers that became empty by it, but for the first ``spare``."""
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


class Found(NamedTuple):
    """What ``put`` met on its way: tidying on the way back would not restore it by itself."""

    empty: tuple[str, ...] | None
    """The last container that was there before and empty."""
    made: tuple[str, ...] | None
    """The first container that was not there."""


def put(node: dict[str, Any], fields: tuple[str, ...], value: Any, where: str = "") -> Found:
    """Set a value, making containers on the way."""
    here, empty, made = node, None, None
    for depth, name in enumerate(fields[:-1], start=1):
        if name not in here:
            here[name] = {}
            made = made or fields[:depth]
        elif here[name] == {}:
            empty = fields[:depth]
        inner = here[name]
        if not isinstance(inner, dict):
            at = join(where, fields[:depth])
            raise ConversionError(f"{at} is not an object, so nothing can be put inside it")
        here = inner
    if fields[-1] in here:
        at = join(where, fields)
        raise ConversionError(f"{at} is already there and no rule says where it goes")
    here[fields[-1]] = value
    return Found(empty, made)


def join(where: str, fields: tuple[str, ...]) -> str:
    for name in fields:
        plain = re.fullmatch(r"[^.\[\]\"]+", name)
        step = name if plain else f"[{json.dumps(name)}]"
        where = f"{where}.{step}" if where and plain else f"{where}{step}"
    return where
