"""Restores one object from a past state: creates it where it is gone, updates it where it exists.

``instar restore`` and ``restore_crd.py`` call this. The owners of fields (managedFields) are
restored with the content. The server sets uid, resourceVersion, generation and times. An owner
reference whose object is gone, or was replaced by another object of that name, is left out, because
the garbage collector would delete the restored object. What an update overwrites is kept in a file
(``overwritten.py``).
"""

from __future__ import annotations

from dataclasses import field

from instar.base.errors import ApiError, Conflict, MethodNotAllowed, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, same_json
from instar.kube.apply.managed_fields import BadManagedFields, Managers
from instar.tools.restorer import field_owners, overwritten
from instar.tools.restorer.errors import RestoreError
from instar.tools.restorer.object_history import NamedObject
from instar.wire.client.client import Client
from instar.wire.client.discovery import ResourceType, listable_resources

_SET_BY_SERVER = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"}
    | {"deletionGracePeriodSeconds", "managedFields", "selfLink"}
)
_OWNER_ATTEMPTS = 5


@dataclass
class Restored:
    """The result for one object."""

    action: str
    """created, updated, or unchanged."""
    before: Object
    after: Object
    notes: list[str] = field(default_factory=list)
    kept: str = ""
    """The file with the state that was overwritten; empty if nothing was."""


def without_server_fields(obj: Object) -> Object:
    """Return the past state without the fields that only a server may set."""
    metadata = {
        name: value
        for name, value in obj["metadata"].items()
        if name not in _SET_BY_SERVER and value
    }
    return {**obj, "metadata": metadata}


class Restorer:
    """Brings an object back: creates it, or overwrites it and keeps its uid."""

    def __init__(self, client: Client, *, dry_run: bool = False) -> None:
        self._client = client
        self._dry_run = dry_run
        self._types: list[ResourceType] | None = None

    async def restore(self, named: NamedObject, past: Object) -> Restored:
        """Create or update the object.

        Raises ``RestoreError`` when another writer is in the way, ``ApiError`` otherwise.
        """
        body, notes = await self._with_living_owners(named, without_server_fields(past))
        try:
            current = await self._client.get(named.path)
        except NotFound:
            return await self._create(named, past, body, notes)
        if current["metadata"].get("deletionTimestamp"):
            raise RestoreError(f"{named} is being deleted: restore it when it is gone")
        return await self._update(named, current, past, body, notes)

    async def create(self, named: NamedObject, past: Object) -> Restored:
        """Create the object. Raises ``AlreadyExists`` when it exists."""
        body, notes = await self._with_living_owners(named, without_server_fields(past))
        return await self._create(named, past, body, notes)

    async def _create(
        self, named: NamedObject, past: Object, body: Object, notes: list[str]
    ) -> Restored:
        made = await self._client.post(named.type.path(named.namespace), body, **self._options())
        made = await self._with_status(named, body, made, notes)
        made = await self._with_field_owners(named, past, body, made, notes)
        return Restored("created", {}, made, notes)

    async def _update(
        self, named: NamedObject, current: Object, past: Object, body: Object, notes: list[str]
    ) -> Restored:
        version = current["metadata"]["resourceVersion"]
        wanted = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
        kept = None if self._dry_run else overwritten.keep(named, current)
        try:
            made = await self._client.put(named.path, wanted, **self._options())
        except Conflict:
            raise RestoreError(f"{named} changed meanwhile: look at it and try again") from None
        made = await self._with_status(named, body, made, notes)
        made = await self._with_field_owners(named, past, body, made, notes)
        same = made["metadata"]["resourceVersion"] == version and not self._dry_run
        if same and kept is not None:
            kept.unlink(missing_ok=True)
        action, at = ("unchanged", "") if same else ("updated", str(kept or ""))
        return Restored(action, current, made, notes, at)

    async def _with_status(
        self, named: NamedObject, body: Object, made: Object, notes: list[str]
    ) -> Object:
        """Write the status through its subresource, if it has one."""
        if "status" not in body or same_json(made.get("status"), body["status"]) or self._dry_run:
            return made
        wanted = {**made, "status": body["status"]}
        try:
            return await self._client.put(f"{named.path}/status", wanted, **self._options())
        except (NotFound, MethodNotAllowed):
            return made
        except ApiError as error:
            notes.append(f"its status was not restored: {error.message}")
            return made

    async def _with_field_owners(
        self, named: NamedObject, past: Object, body: Object, made: Object, notes: list[str]
    ) -> Object:
        """Restore the past managedFields with an update that changes nothing else.

        A failure leaves the restored content as it is and becomes a note.
        """
        if self._dry_run:
            return made
        try:
            owners = field_owners.past_owners(past, body, made)
            return await self._write_owners(named, owners, made, notes) if owners else made
        except BadManagedFields as error:
            notes.append(f"the owners of its fields cannot be read: {error}")
        except ApiError as error:
            notes.append(f"the owners of its fields were not restored: {error.message}")
        return made

    async def _write_owners(
        self, named: NamedObject, owners: Managers, made: Object, notes: list[str]
    ) -> Object:
        """Write the owners; on a conflict repeat, and keep the entries of later writers.

        A server drops all entries when one names a version that the CRD no longer has; then the
        entries of the restored version are written alone.
        """
        live, written, wanted = made, field_owners.read_owners(made), owners
        for _ in range(_OWNER_ATTEMPTS):
            if field_owners.read_owners(live) == wanted:
                return live
            body = field_owners.with_owners(live, wanted)
            try:
                after = await self._client.put(named.path, body, **self._options())
            except Conflict:
                live = await self._client.get(named.path)
                present = field_owners.read_owners(live)
                wanted = field_owners.with_later_writers(owners, written, present)
                continue
            found = field_owners.read_owners(after)
            narrowed = field_owners.of_version(wanted, str(after["apiVersion"]))
            if not field_owners.missing_owners(wanted, found) or narrowed in ({}, wanted):
                missing = field_owners.missing_owners(owners, found)
                if missing:
                    notes.append(f"not restored as owners of fields: {', '.join(missing)}")
                return after
            live, wanted = after, narrowed
        notes.append("the owners of its fields were not restored: the object kept changing")
        return live

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
            self._types = (await listable_resources(self._client)).types
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
        return {
            "fieldManager": field_owners.MANAGER,
            **({"dryRun": "All"} if self._dry_run else {}),
        }
