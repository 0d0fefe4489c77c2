"""Reads past states of one object from the server's ``/instar/history`` endpoint.

``instar history`` and ``instar restore`` call this; ``restore_object.py`` writes a state back.
"""

from __future__ import annotations

from itertools import pairwise

from instar.base.errors import Expired, NotFound, Timeout
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.restorer.errors import RestoreError
from instar.wire.client.client import Client
from instar.wire.client.discovery import ResourceType, listable_resources, types_named

_PREFIX = "/instar/history"
_PAGE = 200


@dataclass(frozen=True)
class NamedObject:
    """The type, namespace and name of an object, whether it exists or not."""

    type: ResourceType
    namespace: str
    name: str

    @property
    def path(self) -> str:
        return self.type.path(self.namespace, self.name)

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.type.name} {self.name!r}{place}"


async def find(client: Client, kind: str, name: str, namespace: str | None) -> NamedObject:
    """Resolve a kind, plural or short name. Raises ``RestoreError`` for no match or several."""
    found = types_named((await listable_resources(client)).types, kind)
    if not found:
        raise RestoreError(
            f"the server has no kind {kind!r}; to restore a deleted CRD, use the kind crd"
        )
    if len(found) > 1:
        names = ", ".join(sorted(each.name for each in found))
        raise RestoreError(f"{kind!r} may be {names}: name one of them")
    place = (namespace or client.access.namespace) if found[0].namespaced else ""
    return NamedObject(found[0], place, name)


async def writes(client: Client, named: NamedObject, limit: int) -> Object:
    """Return the last writes of the object, oldest first."""
    try:
        return await client.get(_PREFIX + named.path, limit=min(limit, _PAGE))
    except NotFound as error:
        raise _missing(error, named) from None


async def state(client: Client, named: NamedObject, revision: int) -> Object:
    """Return the object at a revision."""
    try:
        return await client.get(_PREFIX + named.path, at=revision)
    except Expired as error:
        raise RestoreError(error.message) from None
    except Timeout:
        raise RestoreError(f"revision {revision} is not there yet") from None
    except NotFound as error:
        if not _is_about(error, named):
            raise _missing(error, named) from None
        raise RestoreError(f"{named} was not there at revision {revision}") from None


async def last_alive(client: Client, named: NamedObject) -> tuple[int, Object]:
    """Return the last state before the deletion, and the last revision at which it was current.

    The objects of a deleted CRD are listed at that revision.
    """
    told = await writes(client, named, _PAGE)
    rows = list(told["revisions"])
    if not rows or rows[-1]["operation"] != "delete":
        raise RestoreError(f"{named} is there: say which state with --at REVISION")
    for row, following in reversed(list(pairwise(rows))):
        if row["operation"] == "delete" or row.get("problem"):
            continue
        obj = await state(client, named, row["revision"])
        if not obj["metadata"].get("deletionTimestamp"):
            return following["revision"] - 1, obj
    raise RestoreError(f"the history of {named} is compacted (increase --history)")


def _is_about(error: NotFound, named: NamedObject) -> bool:
    return (error.details or {}).get("name") == named.name


def _missing(error: NotFound, named: NamedObject) -> RestoreError:
    if _is_about(error, named):
        return RestoreError(
            f"{named} has no history: it never existed, or its history is compacted"
        )
    return RestoreError(
        "this server has no history endpoint: it is not instar, or an older release"
    )
