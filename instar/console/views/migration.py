"""Moving a CRD's objects to their storage version, watched and steered.

The work is a ``StorageVersionMigration``'s, done by the server; what ``instar migrate`` would
refuse is not offered here, and every action says why it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from instar.client.client import Client
from instar.client.paths import crd_path, resource_path
from instar.console.views.facts import Unknown, told
from instar.console.views.rights import Wanted, missing
from instar.console.views.versions import refused
from instar.errors import BadRequest, Forbidden, NotFound
from instar.migrator.census import Census, exact_census
from instar.migrator.crd_status import CrdStatus
from instar.migrator.live_crd import LiveCrd, read_live_crd
from instar.migrator.plan import Plan
from instar.migrator.preflight import find_out
from instar.migrator.reading import Reading, read_everything
from instar.migrator.retrying import Patience
from instar.plain import Object
from instar.wording import counted

GROUP, PLURAL = "storagemigration.k8s.io", "storageversionmigrations"
VERSIONS = ("v1", "v1beta1")
PAUSED = "instar.dev/paused"
ACTIONS = ("start", "pause", "resume", "verify", "trim")
_CONCURRENCY = 16
_BRIEF = Patience(attempts=3)


@dataclass(frozen=True)
class State:
    """All that decides what can be done."""

    live: LiveCrd
    api: str | None
    """The version of the migrations' API; None where the cluster has none."""
    migration: Object | None
    progress: Object | None
    census: Census | None
    forbidden: dict[str, list[str]]
    """By action: rights that the visitor lacks."""

    @property
    def stale(self) -> int | None:
        return None if self.census is None else self.census.stale(self.live.storage)

    @property
    def phase(self) -> str | None:
        return None if self.migration is None else phase_of(self.migration)


async def migration(client: Client, name: str, *, planned: bool = True) -> Object:
    """Raises ``ApiError``."""
    state = await _state(client, name)
    plan = await _plan(client, state.live) if planned and state.live.crd.served() else None
    return _document(state, plan)


async def act(client: Client, name: str, action: str) -> Object:
    """Raises ``Conflict`` with every reason where it cannot be done."""
    if action not in ACTIONS:
        raise BadRequest(f"there is no action {action[:50]}; there is {', '.join(ACTIONS)}")
    state = await _state(client, name)
    plan = await _plan(client, state.live) if action == "start" else None
    reasons = blocks(state, action, plan)
    if reasons:
        raise refused(f"{action} of {name} is not possible", reasons)
    verified: Object = {}
    match action:
        case "start":
            await _start(client, state)
        case "pause":
            await _annotate(client, state, "true")
        case "resume":
            await _annotate(client, state, None)
        case "verify":
            reading = await read_everything(client, state.live)
            verified = {"verified": _verified(reading, state.stale)}
        case "trim":
            await _trim(client, state)
    return {**await migration(client, name, planned=False), **verified}


def blocks(state: State, action: str, plan: Plan | None) -> list[str]:
    """Why an action is not possible now; nothing when it is."""
    found = [f"you may not {right}" for right in state.forbidden.get(action, ())]
    phase = state.phase
    under_way = phase in ("waiting", "running", "paused")
    if action in ("start", "pause", "resume") and state.api is None:
        return ["this cluster has no StorageVersionMigration; run instar migrate"]
    match action:
        case "start":
            if under_way:
                found.append(f"a migration is {phase}")
            elif not state.live.old_versions and not state.stale:
                found.append("nothing to do: every object is stored at the storage version")
            found += [] if plan is None else plan.obstacles
        case "pause":
            if phase not in ("waiting", "running"):
                found.append("no migration is running")
            elif state.progress is None and state.census is None:
                found.append("this server cannot pause a migration; delete it instead")
        case "resume":
            found += [] if phase == "paused" else ["no migration is paused"]
        case "verify":
            found += [f"a migration is {phase}; wait for it"] if phase == "running" else []
            found += [] if state.live.crd.served() else ["no version is served"]
        case "trim":
            found += _trim_blocks(state, under_way=under_way)
    return found


def _trim_blocks(state: State, *, under_way: bool) -> list[str]:
    live = state.live
    if not live.old_versions:
        return [f"status.storedVersions names {live.storage} only"]
    found = [f"a migration is {state.phase}"] if under_way else []
    if state.stale is None:
        found.append(
            "this server does not tell where objects are stored; run instar migrate, which proves "
            "it and trims"
        )
    elif state.stale:
        versions = ", ".join(live.old_versions)
        found.append(f"{counted(state.stale, 'object')} may be stored at {versions}")
    return found


def phase_of(migration: Object) -> str:
    if _is_true(migration, "Succeeded"):
        return "succeeded"
    if _is_true(migration, "Failed"):
        return "failed"
    annotations = migration["metadata"].get("annotations") or {}
    if annotations.get(PAUSED) == "true":
        return "paused"
    return "running" if _is_true(migration, "Running") else "waiting"


def _is_true(migration: Object, type: str) -> bool:
    return any(item["type"] == type and item["status"] == "True" for item in _conditions(migration))


def _conditions(migration: Object) -> list[Object]:
    return (migration.get("status") or {}).get("conditions") or []


async def _state(client: Client, name: str) -> State:
    live = read_live_crd(await client.get(crd_path(name)))
    api, listed = await _migrations(client)
    found = _latest(listed, live)
    record = await told(client, "migrations", Unknown())
    known = (record or {}).get("migrations") or {}
    census = await exact_census(client)
    wanted: dict[str, Wanted] = {
        "start": ("create", GROUP, PLURAL, ""),
        "pause": ("patch", GROUP, PLURAL, ""),
        "resume": ("patch", GROUP, PLURAL, ""),
        "trim": ("patch", "apiextensions.k8s.io", "customresourcedefinitions", "status"),
    }
    return State(
        live,
        api,
        found,
        None if found is None else known.get(found["metadata"]["name"]),
        None if census is None else census.get(live.name),
        await missing(client, wanted),
    )


async def _migrations(client: Client) -> tuple[str | None, list[Object]]:
    for version in VERSIONS:
        try:
            page = await client.list(resource_path(GROUP, version, PLURAL))
            return version, page.get("items") or []
        except Forbidden:
            return version, []
        except NotFound:
            continue
    return None, []


def _latest(listed: list[Object], live: LiveCrd) -> Object | None:
    """The one that is not over, else the one that was created last."""
    mine = [item for item in listed if _is_about(item, live)]
    return max(mine, key=_recency, default=None)


def _is_about(item: Object, live: LiveCrd) -> bool:
    asked = (item.get("spec") or {}).get("resource") or {}
    return (asked.get("group"), asked.get("resource")) == (live.crd.group, live.crd.names.plural)


def _recency(item: Object) -> tuple[bool, str, str]:
    metadata = item["metadata"]
    over = phase_of(item) in ("succeeded", "failed")
    return not over, metadata.get("creationTimestamp", ""), metadata["name"]


async def _plan(client: Client, live: LiveCrd) -> Plan:
    facts = await find_out(client, live, via_status=False, concurrency=_CONCURRENCY)
    return Plan(live, facts, _CONCURRENCY, 0.0, forced=False)


def _document(state: State, plan: Plan | None) -> Object:
    return {
        "crd": state.live.name,
        "plan": None if plan is None else plan.to_json(),
        "engine": None if state.api is None else "server",
        "migration": None if state.migration is None else _shown(state, state.migration),
        "stale": state.stale,
        "actions": [
            {"action": action, "allowed": not reasons, "why": reasons}
            for action in ACTIONS
            for reasons in (blocks(state, action, plan),)
        ],
    }


def _shown(state: State, migration: Object) -> Object:
    conditions = _conditions(migration)
    latest = max(conditions, key=lambda item: item.get("lastTransitionTime") or "", default={})
    failed = next((item for item in conditions if item["type"] == "Failed"), latest)
    phase = phase_of(migration)
    base: dict[str, Any] = {
        "name": migration["metadata"]["name"],
        "state": phase,
        "message": (failed if phase == "failed" else latest).get("message") or "",
        "started": migration["metadata"].get("creationTimestamp"),
        "total": None if state.census is None else state.census.total,
        "left": state.stale,
        "failed": 0,
        "failures": [],
        "trouble": None,
        "seconds": None,
        "perSecond": None,
        "secondsLeft": None,
    }
    return {**base, **(state.progress or {})}


async def _start(client: Client, state: State) -> None:
    crd = state.live.crd
    body = {
        "apiVersion": f"{GROUP}/{state.api}",
        "kind": "StorageVersionMigration",
        "metadata": {"generateName": f"console-{crd.names.plural}-"},
        "spec": {"resource": {"group": crd.group, "resource": crd.names.plural}},
    }
    await client.post(resource_path(GROUP, str(state.api), PLURAL), body)


async def _annotate(client: Client, state: State, value: str | None) -> None:
    assert state.migration is not None
    path = resource_path(
        GROUP, str(state.api), PLURAL, name=str(state.migration["metadata"]["name"])
    )
    await client.patch(path, {"metadata": {"annotations": {PAUSED: value}}})


async def _trim(client: Client, state: State) -> None:
    status = CrdStatus(client, state.live, _BRIEF, "the console")
    why = await status.end(prune=True, message="")
    if why:
        raise refused(f"storedVersions of {state.live.name} stays as it is", [why])


def _verified(reading: Reading, stale: int | None) -> Object:
    return {
        "objects": reading.objects,
        "ok": not reading.stopped and not reading.problems and not stale,
        "stopped": reading.stopped,
        "stale": stale,
        "at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "problems": [{"object": key, "message": why} for key, why in reading.problems.items()],
    }
