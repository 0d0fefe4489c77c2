"""In which order Go's strict decoder tells what is wrong with a body whose type it knows.

It tells as it reads: a field it does not know, once and without a look inside; a known one that
comes again. What YAML repeats is found before, by line, and the rest in the order of sorted keys:
the decoder is given JSON that was made of a map.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_MOST = 100


class _Pairs(list[tuple[str, Any]]):
    """An object's members as written, repeats included."""


def as_json_is_read(text: bytes, unknown: list[str]) -> list[str]:
    """Sentences about unknown and repeated fields, each once."""
    document = json.loads(text, object_pairs_hook=_Pairs)
    return _told(document, unknown)


def as_yaml_is_read(value: Any, unknown: list[str]) -> list[str]:
    """The same of a YAML document's value, in which nothing is repeated any more."""
    return _told(_sorted(value), unknown)


def _told(document: Any, unknown: list[str]) -> list[str]:
    strangers = set(unknown)
    found = dict.fromkeys(_problems(document, "", strangers))
    missed = [text for text in map(_unknown, unknown) if text not in found]
    return [*found, *missed][:_MOST]


def _problems(value: Any, path: str, strangers: set[str]) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, item in value:
            where = f"{path}.{name}" if path else name
            if where in strangers:
                yield _unknown(where)
                continue
            if name in seen:
                yield f'duplicate field "{where}"'
            seen.add(name)
            yield from _problems(item, where, strangers)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _problems(item, f"{path}[{position}]", strangers)


def _unknown(path: str) -> str:
    return f'unknown field "{path}"'


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return _Pairs((name, _sorted(value[name])) for name in sorted(value))
    return [_sorted(item) for item in value] if isinstance(value, list) else value
