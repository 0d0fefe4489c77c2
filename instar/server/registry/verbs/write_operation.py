"""The operation that admission sees, and the refusal of an invalid object, for creates and updates.

``write.py`` and ``update_attempt.py`` call it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from instar.base import errors
from instar.base.field_errors import FieldError, with_given_empties
from instar.base.json_values import Object
from instar.server.registry.resources.admission import Operation, Verb
from instar.server.registry.resources.context import WriteOptions
from instar.server.registry.resources.resource import Target


def write_operation(
    verb: Verb,
    target: Target,
    obj: Object,
    old: Object | None,
    options: WriteOptions,
    size: int,
    subresource: str = "",
) -> Operation:
    """Describe a create or an update to the admission plugins."""
    return Operation(
        verb,
        options.asked,
        target,
        obj,
        old,
        subresource,
        options.dry_run,
        options.warn,
        name=target.name or obj["metadata"].get("name", ""),
        options=options,
        annotate=options.annotate,
        seconds_left=options.seconds_left,
        size=size,
    )


def refuse_invalid(
    target: Target,
    obj: Object,
    found: Sequence[FieldError],
    given: Callable[[], Any] | None = None,
) -> NoReturn:
    """Raise the 422 of an invalid object. Part of the segment that validates: for a large object
    writing the errors takes as long as finding them."""
    strategy = target.serving.strategy
    if given is not None and any(error.value is None for error in found):
        found = with_given_empties(found, given())
    group = target.serving.group if strategy.told_group is None else strategy.told_group
    if strategy.keeps_nulls:  # an untyped object says itself what it is
        group = (obj.get("apiVersion") or "").rpartition("/")[0]
    name = obj["metadata"].get("name", "")
    raise errors.invalid(group, obj.get("kind", ""), name, found)
