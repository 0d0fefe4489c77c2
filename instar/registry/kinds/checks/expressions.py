"""CEL of admission: whether an expression can be read, and of what type it is.

Objects are of any type here, so what depends on one may be anything and is let pass."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from instar.cel.engine import BadExpression, analyse
from instar.cel.types import BOOL, DYN, STRING, Type
from instar.fields import FieldError, invalid, required

_ALWAYS = ("object", "oldObject", "request", "namespaceObject", "authorizer", "variables", "params")
_VARIABLES: Mapping[str, Type] = dict.fromkeys(_ALWAYS, DYN)


@lru_cache(maxsize=1024)
def type_of(text: str) -> Type | str:
    """The type, or why there is none."""
    try:
        return analyse(text, _VARIABLES).type
    except BadExpression as error:
        return f"compilation failed: {error}"


def bool_errors(text: str, path: str) -> list[FieldError]:
    if not text.strip():
        return [required(path, "expression is not specified")]
    found = type_of(text)
    if isinstance(found, str):
        return [invalid(path, text, found)]
    if found in (BOOL, DYN):
        return []
    return [invalid(path, text, f"must evaluate to bool but got {found}")]


def text_errors(text: str, path: str) -> list[FieldError]:
    if not text.strip():
        return [invalid(path, text, "must be non-empty if specified")]
    found = type_of(text)
    if isinstance(found, str):
        return [invalid(path, text, found)]
    if found in (STRING, DYN):
        return []
    return [invalid(path, text, f"must evaluate to string but got {found}")]


def simple_type(text: str) -> str:
    """The type of an expression that is no object; empty where it may be one."""
    found = type_of(text)
    return "" if isinstance(found, str) or found is DYN or "(" in str(found) else str(found)
