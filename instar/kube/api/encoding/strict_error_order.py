"""Order of strict-decoding errors (unknown and duplicate fields) as Go's decoder reports them.

Called by ``server/rest/bodies.py`` and ``kube/patches/documents.py``. The decoder reports while
reading: an unknown field once, without looking inside, and a repeated known field. YAML reports its
duplicates first, by line, and then unknown fields in sorted key order, because it is converted to
JSON through a map.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_MAX_MESSAGES = 100
"""Further messages are left out."""


class _Pairs(list[tuple[str, Any]]):
    """An object's members as written, repeats included."""


def as_json_is_read(text: bytes, unknown: list[str]) -> list[str]:
    """Return messages for unknown and repeated fields of a JSON text, each once."""
    document = json.loads(text, object_pairs_hook=_Pairs)
    return _messages(document, unknown)


def as_yaml_is_read(value: Any, unknown: list[str]) -> list[str]:
    """Return messages for unknown fields of a YAML document's value (duplicates are gone by
    then)."""
    return _messages(_sorted(value), unknown)


def _messages(document: Any, unknown: list[str]) -> list[str]:
    strangers = set(unknown)
    found = dict.fromkeys(_problems(document, "", strangers))
    missed = [text for text in map(_unknown, unknown) if text not in found]
    return [*found, *missed][:_MAX_MESSAGES]


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
