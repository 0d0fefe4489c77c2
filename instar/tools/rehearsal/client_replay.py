"""Replays the requests of clients after a step: checks each client by its verbs, its recorded
requests, or the fields it owns.

``batch.py`` calls it after each step, with the clients that ``clients.py`` found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.kube.api.crd import Crd
from instar.kube.api.user_agents import is_ours
from instar.server.lifecycle.embedded import EmbeddedReply
from instar.tools.rehearsal.clients import (
    APPLY_PATCH,
    CREATING,
    READING,
    WRITING,
    ClientCall,
    ObservedClient,
    Recorded,
    manager_name,
)
from instar.tools.rehearsal.model import ClientStanding, ClientVerdict, DamageFact, Exchange
from instar.tools.rehearsal.object_diff import content_digest, key_of
from instar.tools.rehearsal.owned_fields import own_fields
from instar.tools.rehearsal.sandbox import Sandbox, answer, body_text
from instar.tools.rehearsal.version_findings import ReferenceReadings, VersionFindings
from instar.tools.reviewer.report import Damage

BY_USAGE = "known by its verbs only: judged as if it read and wrote objects like those stored"
_HARMS: Mapping[frozenset[str], Mapping[Damage, ClientStanding]] = {
    READING: {
        Damage.UNREADABLE: ClientStanding.BROKEN,
        Damage.PRUNED: ClientStanding.WARNED,
        Damage.CHANGED: ClientStanding.WARNED,
    },
    WRITING: {
        Damage.UNREADABLE: ClientStanding.BROKEN,
        Damage.INVALID: ClientStanding.BROKEN,
        Damage.PRUNED: ClientStanding.WARNED,
        Damage.FROZEN: ClientStanding.WARNED,
        Damage.OWNERSHIP_LOST: ClientStanding.WARNED,
    },
    CREATING: {Damage.FROZEN: ClientStanding.BROKEN, Damage.INVALID: ClientStanding.BROKEN},
}
_OTHERWISE = {Damage.UNREADABLE: ClientStanding.BROKEN}
"""Requirement of deletions and other verbs: the object in the response must be convertible."""
Judgements = Mapping[str, VersionFindings]


def judge_by_usage(
    client: ObservedClient,
    crd: Crd,
    judgements: Judgements,
    reference: ReferenceReadings,
    not_served: Mapping[str, Exchange],
) -> ClientVerdict:
    """Check a client by the findings about every object at the versions it uses. Pure."""
    verdict = ClientVerdict()
    for use in client.uses:
        verdict.requests += use.number
        found = judgements.get(use.version)
        if found is not None:
            _use(verdict, use, found, reference)
        elif not reference.knows(use.version):
            continue
        else:
            text = f"{use.verb} at {use.version}, which is not served any more"
            verdict.note(ClientStanding.BROKEN, text, not_served.get(use.version))
    if verdict.standing is not ClientStanding.UNAFFECTED or client.uses:
        verdict.rests_on(BY_USAGE)
    return verdict


def _use(
    verdict: ClientVerdict, use: ClientCall, found: VersionFindings, reference: ReferenceReadings
) -> None:
    """Check one usage record by the findings about its version."""
    what = f"{use.verb} at {use.version}"
    fresh = set(found.warnings) - set(reference.warnings.get(use.version, ()))
    for text in sorted(fresh):
        verdict.note(ClientStanding.WARNED, f"{what}: {text}")
    if use.verb in ("list", "watch") and found.list_failed is not None and found.harms:
        verdict.note(ClientStanding.BROKEN, f"{what} fails as a whole", found.list_failed)
    if found.unknown:
        why, number = found.unknown.most_common(1)[0]
        verdict.note(ClientStanding.UNKNOWN, f"{what}: {why} ({counted(number, 'object')})")
    standings = next((rows for verbs, rows in _HARMS.items() if use.verb in verbs), _OTHERWISE)
    for damage, standing in standings.items():
        harms = [harm for harm in found.harms if harm.damage is damage]
        if harms:
            verdict.note(standing, f"{what}: {_objects(harms)} {damage}", harms[0].exchange)


def _objects(harms: list[DamageFact]) -> str:
    return counted(len({harm.key for harm in harms}), "object")


class FieldOwner(NamedTuple):
    manager: str
    operation: str
    version: str
    subresource: str

    @property
    def name(self) -> str:
        return manager_name(self.manager, self.operation, self.subresource)


@dataclass
class Managed:
    """Field managers from managedFields, each with the objects to test it with."""

    keys: dict[FieldOwner, list[tuple[str, Object]]]
    """Sample of (object, entry)."""
    counts: dict[FieldOwner, int]
    last: dict[FieldOwner, str]


def managers_of(objects: Iterable[Object], group: str, most: int) -> Managed:
    """Collect managers with objects that differ in their owned fields, because equal ones would
    repeat the same test.
    """
    found = Managed({}, {}, {})
    seen: set[tuple[FieldOwner, str]] = set()
    for obj in objects:
        metadata = obj.get("metadata") or {}
        for entry in metadata.get("managedFields") or ():
            if not isinstance(entry, dict):
                continue
            entry_group, _, version = str(entry.get("apiVersion") or "").rpartition("/")
            manager = str(entry.get("manager") or "")
            if entry_group != group or is_ours(manager):
                continue
            owner = FieldOwner(
                manager,
                str(entry.get("operation") or "Update"),
                version,
                str(entry.get("subresource") or ""),
            )
            found.counts[owner] = found.counts.get(owner, 0) + 1
            time = str(entry.get("time") or "")
            found.last[owner] = max(found.last.get(owner, ""), time)
            sample = found.keys.setdefault(owner, [])
            shape = (owner, str(entry.get("fieldsV1")))
            if len(sample) < most and (shape not in seen or len(sample) < most // 2):
                seen.add(shape)
                sample.append((key_of(obj), entry))
    return found


class Replayer:
    """Sends requests to the sandbox and, where they are refused, to the state before the
    release.
    """

    def __init__(self, stage: Sandbox, reference: ReferenceReadings, managed: Managed) -> None:
        self._stage, self._reference, self._managed = stage, reference, managed
        self._keys = frozenset(stage.keys)

    async def managers(self) -> dict[str, ClientVerdict]:
        found: dict[str, ClientVerdict] = {}
        for owner, sample in self._managed.keys.items():
            verdict = found.setdefault(owner.name, ClientVerdict())
            total = self._managed.counts[owner]
            if len(sample) < total:
                verdict.rests_on(f"tried on a sample of the objects it owns at {owner.version}")
            last = self._managed.last[owner]
            verdict.rests_on(
                f"assumed to write at {owner.version} still, as managedFields say"
                + (f" (last on {last[:10]})" if last else "")
            )
            for key, entry in sample:
                verdict.requests += 1
                await self._own(verdict, owner, key, entry)
        return found

    async def _own(
        self, verdict: ClientVerdict, owner: FieldOwner, key: str, entry: Object
    ) -> None:
        """Apply the fields that a manager owns again, at its version."""
        now = await self._repeat_request(self._stage, owner, key, entry)
        if isinstance(now, str):
            verdict.note(ClientStanding.UNKNOWN, now)
            return
        request, sent, reply = now
        if reply.refused:
            before = await self._repeat_request(self._reference.stage, owner, key, entry)
            if not isinstance(before, str) and before[2].refused:
                return
            told = "" if isinstance(before, str) else answer(before[2])
            exchange = Exchange(request, key, answer(reply), told)
            verdict.note(ClientStanding.BROKEN, f"{owner.operation} at {owner.version}", exchange)
            return
        fresh = set(reply.warnings) - set(self._reference.warnings.get(owner.version, ()))
        for text in sorted(fresh):
            verdict.note(ClientStanding.WARNED, f"{owner.operation} at {owner.version}: {text}")
        if sent is not None and content_digest(reply.document) != content_digest(sent):
            text = f"{owner.operation} at {owner.version} of its own fields changes the object"
            verdict.note(ClientStanding.WARNED, text, Exchange(request, key, answer(reply)))

    async def _repeat_request(
        self, stage: Sandbox, owner: FieldOwner, key: str, entry: Object
    ) -> tuple[str, Object | None, EmbeddedReply] | str:
        """Return the request, the object as read and the response, or why the test is not
        possible.
        """
        if owner.subresource not in ("", "status"):
            return f"writes through {owner.subresource}, which is not replayed"
        path = stage.path(owner.version, key, owner.subresource)
        reading = await stage.read(owner.version, key)
        if reading.obj is None:
            reply = await stage.ask("GET", stage.path(owner.version, key))
            return f"GET {stage.path(owner.version, key)}", None, reply
        if owner.operation != "Apply":
            query = {"dryRun": "All", "fieldManager": owner.manager[:128] or "unknown"}
            reply = await stage.ask("PUT", path, reading.obj, query=query)
            return f"PUT {path}", reading.obj, reply
        body = own_fields(entry, reading.obj)
        if body is None:
            return "its entry in managedFields cannot be read"
        query = {"dryRun": "All", "fieldManager": owner.manager[:128] or "unknown"}
        reply = await stage.ask("PATCH", path, body, query=query, content_type=APPLY_PATCH)
        return f"PATCH {path} (apply) {body_text(body)}", reading.obj, reply

    async def recorded(self, client: ObservedClient, *, collections: bool) -> ClientVerdict:
        """Repeat recorded requests. ``collections``: also lists and creates, which only one batch
        has to repeat.
        """
        verdict = ClientVerdict()
        if client.left_out:
            verdict.rests_on(f"{client.left_out} more of its requests are alike, or too many")
        for request in client.recorded:
            if request.key in self._keys if request.key else collections:
                verdict.requests += 1
                await self._repeat(verdict, request)
        return verdict

    async def _repeat(self, verdict: ClientVerdict, request: Recorded) -> None:
        reply = await self._send(self._stage, request)
        if request.basis:
            verdict.rests_on(request.basis)
        shown = f"{request.method} {request.path} {body_text(request.body)}".strip()
        if not reply.refused:
            fresh = set(reply.warnings) - set(self._reference.warnings.get(request.version, ()))
            for text in sorted(fresh):
                verdict.note(ClientStanding.WARNED, f"{request.verb} at {request.version}: {text}")
            return
        before = await self._send(self._reference.stage, request)
        if before.refused:
            return
        exchange = Exchange(shown, request.key, answer(reply), answer(before))
        verdict.note(ClientStanding.BROKEN, f"{request.verb} at {request.version}", exchange)

    async def _send(self, stage: Sandbox, request: Recorded) -> EmbeddedReply:
        query = dict(request.query)
        body: Any = request.body
        path = request.path
        if request.method != "GET":
            query["dryRun"] = "All"
        if request.verb == "create" and isinstance(body, dict):
            metadata = dict(body.get("metadata") or {})
            if metadata.pop("name", None) or not metadata.get("generateName"):
                metadata["generateName"] = "rehearsed-"
            metadata.pop("resourceVersion", None)
            metadata.pop("uid", None)
            body = {**body, "metadata": metadata}
        if request.verb == "update" and isinstance(body, dict):
            metadata = {
                name: value
                for name, value in (body.get("metadata") or {}).items()
                if name not in ("resourceVersion", "uid", "managedFields")
            }
            body = {**body, "metadata": metadata}
        return await stage.ask(
            request.method, path, body, query=query, content_type=request.content_type
        )
