"""An object comes back: created anew where it is gone, written over where it is there.

What the server alone decides is not restored: uid, revision, generation, times and the owners of
fields. An owner that is gone, or is another object of that name, is not named again: the garbage
collector would delete what was just brought back.
"""

from __future__ import annotations

from dataclasses import field

from instar.base.errors import ApiError, Conflict, MethodNotAllowed, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.tools.restorer.errors import RestoreError
from instar.tools.restorer.object_history import NamedObject
from instar.wire.client.client import Client
from instar.wire.client.discovery import ResourceType, listable

_SERVERS = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"}
    | {"deletionGracePeriodSeconds", "managedFields", "selfLink"}
)
MANAGER = "instar-restore"


@dataclass
class Restored:
    """What was done to one object."""

    action: str
    """created, updated, or unchanged."""
    before: Object
    after: Object
    notes: list[str] = field(default_factory=list)


def cleaned(obj: Object) -> Object:
    """What a client may write of a past state."""
    metadata = {
        name: value for name, value in obj["metadata"].items() if name not in _SERVERS and value
    }
    return {**obj, "metadata": metadata}


class Restorer:
    def __init__(self, client: Client, *, dry_run: bool = False) -> None:
        self._client = client
        self._dry_run = dry_run
        self._types: list[ResourceType] | None = None

    async def restore(self, named: NamedObject, past: Object) -> Restored:
        """Raises ``RestoreError`` where somebody else is in the way, ``ApiError`` otherwise."""
        body, notes = await self._with_living_owners(named, cleaned(past))
        try:
            current = await self._client.get(named.path)
        except NotFound:
            return await self._create(named, body, notes)
        if current["metadata"].get("deletionTimestamp"):
            raise RestoreError(f"{named} is being deleted: restore it when it is gone")
        return await self._update(named, current, body, notes)

    async def create(self, named: NamedObject, past: Object) -> Restored:
        """Only where it is not there. Raises ``AlreadyExists``."""
        body, notes = await self._with_living_owners(named, cleaned(past))
        return await self._create(named, body, notes)

    async def _create(self, named: NamedObject, body: Object, notes: list[str]) -> Restored:
        made = await self._client.post(named.type.path(named.namespace), body, **self._options())
        made = await self._with_status(named, body, made, notes)
        return Restored("created", {}, made, notes)

    async def _update(
        self, named: NamedObject, current: Object, body: Object, notes: list[str]
    ) -> Restored:
        version = current["metadata"]["resourceVersion"]
        wanted = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
        try:
            made = await self._client.put(named.path, wanted, **self._options())
        except Conflict:
            raise RestoreError(f"{named} changed meanwhile: look at it and try again") from None
        made = await self._with_status(named, body, made, notes)
        same = made["metadata"]["resourceVersion"] == version and not self._dry_run
        return Restored("unchanged" if same else "updated", current, made, notes)

    async def _with_status(
        self, named: NamedObject, body: Object, made: Object, notes: list[str]
    ) -> Object:
        """Where the status is a subresource it is written on its own."""
        if "status" not in body or made.get("status") == body["status"] or self._dry_run:
            return made
        wanted = {**made, "status": body["status"]}
        try:
            return await self._client.put(f"{named.path}/status", wanted, **self._options())
        except (NotFound, MethodNotAllowed):
            return made
        except ApiError as error:
            notes.append(f"its status was not restored: {error.message}")
            return made

    async def _with_living_owners(
        self, named: NamedObject, body: Object
    ) -> tuple[Object, list[str]]:
        references = body["metadata"].get("ownerReferences") or []
        kept, notes = [], []
        for reference in references:
            if await self._lives(named, reference):
                kept.append(reference)
            else:
                who = f"{reference.get('kind')} {reference.get('name')!r}"
                notes.append(f"its owner {who} is gone or another one: it is not named again")
        if not notes:
            return body, notes
        metadata = {**body["metadata"], "ownerReferences": kept}
        if not kept:
            del metadata["ownerReferences"]
        return {**body, "metadata": metadata}, notes

    async def _lives(self, named: NamedObject, reference: Object) -> bool:
        if self._types is None:
            self._types = (await listable(self._client)).types
        group = str(reference.get("apiVersion", "")).rpartition("/")[0]
        wanted = (group, reference.get("kind"))
        found = next((each for each in self._types if (each.group, each.kind) == wanted), None)
        if found is None:
            return False
        place = named.namespace if found.namespaced else ""
        try:
            owner = await self._client.get(found.path(place, str(reference.get("name"))))
        except NotFound:
            return False
        return bool(owner["metadata"].get("uid") == reference.get("uid"))

    def _options(self) -> dict[str, str]:
        return {"fieldManager": MANAGER, **({"dryRun": "All"} if self._dry_run else {})}
