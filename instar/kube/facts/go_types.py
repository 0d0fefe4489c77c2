"""Go type names of fields whose Go type cannot be derived from their JSON type, such as
``v1.ServiceType`` for a text or ``v1.ResourceList`` for a map.

Used by ``kube/typed/errors.py``, whose messages quote them. ``go_types.json`` was recorded from a
kube-apiserver 1.36.4, which names a field's type when it gets a value of the wrong type.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import orjson

from instar.kube.facts.messages import fields_of

_FILE = Path(__file__).parent / "go_types.json"


def go_type_of(message: str, field: str) -> str:
    """Return the Go type of a message's field; empty where the JSON type determines it."""
    found = _type_table().get(message, {}).get(field, "")
    if found or "#" not in message:
        return found
    inlined = (each.type for each in fields_of(message) if not each.name)
    return next((text for each in inlined if (text := go_type_of(each, field))), "")


@cache
def _type_table() -> Mapping[str, Mapping[str, str]]:
    named: Mapping[str, Mapping[str, str]] = orjson.loads(_FILE.read_bytes())
    return named
