"""Minimises a counterexample: removes fields and items, and replaces values by simpler ones.

``search.py`` and ``live.py`` call this. The reduction works on objects, because hypothesis shrinks
only the objects that it generated itself, and a counterexample may also be a directed or a live
object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from instar.base.json_values import Object, copy_json, same_json
from instar.tools.sdk.checking.differences import PathSteps
from instar.tools.sdk.checking.laws import Inapplicable, Law, LawBroken, VersionPair
from instar.tools.sdk.checking.parts import removable, without_paths

MOST_TRIES = 1500
_FEW_ITEMS = 12
"""Of a longer list only the first items are made smaller."""
_COMMON_FIELDS = ("apiVersion", "kind", "metadata")
_DECORATIONS = ("labels", "annotations", "generation", "finalizers", "managedFields")


def minimise(
    pair: VersionPair, law: Law, inputs: list[Object], *, simplify: bool = True
) -> tuple[list[Object], LawBroken]:
    """Return smaller inputs and the way they break the law.

    Without ``simplify`` every value that is left is one of the given objects.
    """
    broken = _judge(pair, law, inputs)
    if broken is None:
        raise ValueError("these inputs do not break the law")
    tries = 0
    shrinking = True
    while shrinking:
        shrinking = False
        candidates = chain(
            _smaller(pair, law, inputs), _simpler(pair, law, inputs) if simplify else ()
        )
        for candidate in candidates:
            tries += 1
            if tries > MOST_TRIES:
                return inputs, broken
            found = _judge(pair, law, candidate) if _fit(pair, law, candidate) else None
            if found is not None:
                inputs, broken, shrinking = candidate, found, True
                break
    return inputs, broken


def _judge(pair: VersionPair, law: Law, inputs: Sequence[Object]) -> LawBroken | None:
    try:
        law.check(pair, inputs)
    except LawBroken as broken:
        return broken
    except Inapplicable:
        return None
    return None


def _smaller(pair: VersionPair, law: Law, inputs: list[Object]) -> Iterator[list[Object]]:
    for index, wanted in enumerate(law.inputs):
        if wanted == "part":
            continue
        version = pair.target if wanted == "target" else pair.source
        for field in removable(inputs[index], version.compiled.structural):
            yield _lacking(law, inputs, index, field)
        for name in _DECORATIONS:
            if name in inputs[index]["metadata"]:
                yield _lacking(law, inputs, index, ("metadata", name))


def _simpler(pair: VersionPair, law: Law, inputs: list[Object]) -> Iterator[list[Object]]:
    """Yield inputs with one value replaced by a simpler one, or one list cut."""
    for index, wanted in enumerate(law.inputs):
        if wanted == "part":
            continue
        for path, value in _values(inputs[index]):
            for simple in _simpler_values(value):
                changed = list(inputs)
                for at in range(len(inputs)):
                    if at == index or law.inputs[at] == "part":
                        changed[at] = _with_value(inputs[at], path, value, simple)
                yield changed


def _values(obj: Object) -> Iterator[tuple[PathSteps, Any]]:
    """Yield lists before their items, so that long lists are cut first."""
    waiting: list[tuple[PathSteps, Any]] = [
        ((name,), value) for name, value in obj.items() if name not in _COMMON_FIELDS
    ]
    while waiting:
        path, value = waiting.pop(0)
        if isinstance(value, dict):
            waiting += [((*path, name), inner) for name, inner in value.items()]
            continue
        yield path, value
        if isinstance(value, list):
            waiting += [((*path, place), inner) for place, inner in enumerate(value[:_FEW_ITEMS])]


def _simpler_values(value: Any) -> Iterator[Any]:
    if value is True:
        yield False
    elif isinstance(value, list):
        half = len(value) // 2
        if half > 1:
            yield from (value[:half], value[half:])
        if 0 < len(value) <= _FEW_ITEMS:
            yield from (value[:place] + value[place + 1 :] for place in range(len(value)))
    elif isinstance(value, str):
        yield from (each for each in ("", "a") if len(each) < len(value))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from (each for each in (0, 1) if each < abs(value))


def _with_value(obj: Object, path: PathSteps, old: Any, new: Any) -> Object:
    """Return a copy with another value at the path, if the old value is there."""
    changed: Object = copy_json(obj)
    holder: Any = changed
    try:
        for step in path[:-1]:
            holder = holder[step]
        if same_json(holder[path[-1]], old):
            holder[path[-1]] = copy_json(new)
    except (KeyError, IndexError, TypeError):
        return changed
    return changed


def _lacking(law: Law, inputs: list[Object], index: int, field: PathSteps) -> list[Object]:
    """Yield the inputs without one field; a partial and its whole object lose it together."""
    return [
        without_paths(obj, [field]) if at == index or law.inputs[at] == "part" else obj
        for at, obj in enumerate(inputs)
    ]


def _fit(pair: VersionPair, law: Law, inputs: Sequence[Object]) -> bool:
    for obj, wanted in zip(inputs, law.inputs, strict=True):
        version = pair.target if wanted == "target" else pair.source
        if wanted != "part" and version.problems(obj):
            return False
    return True
