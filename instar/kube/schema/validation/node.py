"""``ValidationNode``: a compiled schema node with its checks for each JSON type.

``validate.py`` assembles nodes; the keyword modules (``scalars``, ``numbers``, ``containers``,
``combinators``) supply the checks and descend into child nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from instar.base.field_errors import FieldError
from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.structure.structural import Structural
from instar.kube.schema.validation.findings import EnoughFound, collect_errors
from instar.kube.schema.validation.numbers import INT64_MAX, INT64_MIN
from instar.kube.schema.validation.ratchet import unchanged

Check = Callable[[Any, Any, str, list[FieldError]], None]
"""(value, old value, path, errors so far)"""


Passes = Callable[[Any], bool]
"""Returns whether a value is valid, without messages; see ``fast_validate.py``."""


class Unchecked:
    """Placeholder for a member that is valid or ratcheted: no check applies to it."""


UNJUDGED = Unchecked()


class ValidationNode:
    """``table`` maps the Python type of a JSON value to its checks; empty means any value is
    valid."""

    __slots__ = ("__weakref__", "passes", "schema", "table")

    passes: Passes

    def __init__(self, schema: Structural) -> None:
        self.schema = schema
        self.table: dict[type, tuple[Check, ...]] = {Unchecked: ()}

    def run(self, value: Any, old: Any, path: str, out: list[FieldError]) -> None:
        """Validate the value; drop all its errors if it equals its old value."""
        before = len(out)
        read, kind = value, value.__class__
        if kind is int and not INT64_MIN <= value <= INT64_MAX:
            # Upstream decodes an integer beyond int64 as a float.
            read, kind = float(value), float
        try:
            for check in self.table[kind]:
                check(read, old, path, out)
        except EnoughFound:
            if old is ABSENT or not unchanged(self.schema, value, old):
                raise
        if len(out) > before and old is not ABSENT and unchanged(self.schema, value, old):
            del out[before:]

    def accepts(self, value: Any, path: str) -> bool:
        return not collect_errors(lambda out: self.run(value, ABSENT, path, out))
