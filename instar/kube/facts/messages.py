"""Protobuf messages of the built-in kinds: field numbers, types and JSON names.

Used by the protobuf and typed codecs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from instar.kube.facts.block_file import BlockFile, split_reference

META = "meta.k8s.io/v1"
_COMMON_KINDS = frozenset(
    {
        "CreateOptions",
        "DeleteOptions",
        "GetOptions",
        "ListOptions",
        "PatchOptions",
        "UpdateOptions",
        "WatchEvent",
    }
)
"""Kinds that every group version has; their message is in the meta group."""
_SAME_SHAPE = {"storagemigration.k8s.io/v1": "storagemigration.k8s.io/v1beta1"}
"""Group versions that upstream does not serve, and those whose messages encode them."""
_ALWAYS, _SHOWN = 1, 2
_SHELF = BlockFile("messages.shelf")


class MessageField(NamedTuple):
    """One field of a message."""

    number: int
    name: str
    """JSON name; empty for an inlined message, with fields that are the parent's in JSON."""
    type: str
    """``string``, ``bool``, ``int32``, ``int64``, ``double``, ``bytes``, or a message's name."""
    repeated: bool
    mapped: bool
    """A map with text keys; ``type`` is the type of its values."""
    always: bool
    """Written even when unset."""
    shown: bool
    """Shown in JSON even when unset."""


def message_of(api_version: str, kind: str) -> str | None:
    """Return the name (``apps/v1#Deployment``) of a kind's message; None for an unknown kind.

    Kinds without a group, such as discovery documents, may come without an apiVersion.
    """
    if kind in _COMMON_KINDS:
        return f"{META}#{kind}"
    return _kinds(_SAME_SHAPE.get(api_version, api_version) or "v1").get(kind)


@cache
def _kinds(api_version: str) -> Mapping[str, str]:
    names = (split_reference(name, api_version) for name in _SHELF.note(api_version) or ())
    return {name: f"{block}#{name}" for block, name in names}


def fields_of(message: str) -> tuple[MessageField, ...]:
    """Return the fields by number. Raises ``KeyError`` for an unknown message."""
    block, _, name = message.partition("#")
    return tuple(_field(row, block) for row in _SHELF.block(block)[name])


def group_versions() -> list[str]:
    """Return every apiVersion that has kinds."""
    return [name for name in _SHELF.names() if _SHELF.note(name)]


def kinds_of(api_version: str) -> list[str]:
    """Return the kinds of a group version that have a message, without the kinds of all
    versions."""
    return sorted(_kinds(api_version))


def _field(row: list[Any], home: str) -> MessageField:
    number, name, written, flags = row
    repeated, mapped = written.startswith("[]"), written.startswith("{}")
    type = written[2:] if repeated or mapped else written
    if type[0].isupper() or "#" in type:
        block, short = split_reference(type, home)
        type = f"{block}#{short}"
    return MessageField(
        number, name, type, repeated, mapped, bool(flags & _ALWAYS), bool(flags & _SHOWN)
    )
