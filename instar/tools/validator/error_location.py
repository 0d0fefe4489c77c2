"""Maps the path of a server's field error to a place in the object: ``spec.list[0].name`` → JSON
pointer.

Used by ``validate.py`` to find line numbers.
"""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Pointer


def pointer_of(field: str, value: Any) -> Pointer:
    """Return the pointer, as deep as the value exists. The value resolves names with dots, which
    the text cannot distinguish from nested names.
    """
    pointer: list[str | int] = []
    rest = field
    while rest:
        step = _index(rest, value) if rest[0] == "[" else _name(rest.removeprefix("."), value)
        if step is None:
            break
        token, rest = step
        pointer.append(token)
        value = value[token]
    return tuple(pointer)


def _index(rest: str, value: Any) -> tuple[str | int, str] | None:
    if isinstance(value, dict):
        names = [name for name in value if rest.startswith(f"[{name}]")]
        longest = max(names, key=len, default=None)
        return None if longest is None else (longest, rest[len(longest) + 2 :])
    inside, _, after = rest[1:].partition("]")
    if isinstance(value, list) and inside.isdecimal() and int(inside) < len(value):
        return int(inside), after
    return None


def _name(rest: str, value: Any) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return None
    names = [name for name in value if name and _begins_with(rest, name)]
    longest = max(names, key=len, default=None)
    return None if longest is None else (longest, rest[len(longest) :])


def _begins_with(rest: str, name: str) -> bool:
    return rest.startswith(name) and rest[len(name) : len(name) + 1] in ("", ".", "[")
