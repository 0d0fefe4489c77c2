"""View: shows and controls the migration of a CRD's objects to the storage version.

Called by ``tools/console/api.py``. The server runs the migration as a ``StorageVersionMigration``,
or the standalone console runs the migrator (``local_migrations.py``). Actions that
``instar migrate`` would refuse are disabled, with the reason.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from instar.base.errors import BadRequest
from instar.base.json_values import Object
from instar.tools.console.local_migrations import LocalMigrations
from instar.tools.console.views.migration_state import (
    GROUP,
    PAUSED,
    PLURAL,
    MigrationState,
    blocks,
    conditions_of,
    phase_of,
    read_state,
)
from instar.tools.console.views.versions import refused_edit
from instar.tools.migrator.crd_status import CrdStatus
from instar.tools.migrator.live_crd import LiveCrd
from instar.tools.migrator.plan import Plan
from instar.tools.migrator.preflight import run_preflight
from instar.tools.migrator.propagation_delay import SETTLE, seconds_to_settle
from instar.tools.migrator.read_check import ReadCheckResult, read_everything
from instar.tools.migrator.retries import RetryPolicy
from instar.wire.client.client import Client
from instar.wire.client.paths import resource_path

ACTIONS = ("start", "pause", "resume", "verify", "trim")
_CONCURRENCY = 16
_BRIEF = RetryPolicy(attempts=3)


async def migration(
    client: Client, name: str, local: LocalMigrations | None = None, *, planned: bool = True
) -> Object:
    """Return the state of the migration; ``local`` runs it on clusters without a migration
    controller. Raises ``ApiError``.
    """
    state = await read_state(client, name, local)
    plan = await _plan(client, state.live) if planned and state.live.crd.served() else None
    return _document(state, plan)


async def act(
    client: Client, name: str, action: str, local: LocalMigrations | None = None
) -> Object:
    """Perform an action. Raises ``Conflict`` with all reasons if it is not possible."""
    if action not in ACTIONS:
        raise BadRequest(f"there is no action {action[:50]}; there is {', '.join(ACTIONS)}")
    state = await read_state(client, name, local)
    plans = action == "start" or (action == "resume" and state.local is not None)
    plan = await _plan(client, state.live) if plans else None
    reasons = blocks(state, action, plan)
    if reasons:
        raise refused_edit(f"{action} of {name} is not possible", reasons)
    verified: Object = {}
    match action:
        case "start" | "pause" | "resume":
            await _perform(client, state, action, plan)
        case "verify":
            reading = await read_everything(client, state.live)
            verified = {"verified": _verified(reading, state.stale)}
        case "trim":
            await _trim(client, state)
    return {**await migration(client, name, local, planned=False), **verified}


async def _perform(client: Client, state: MigrationState, action: str, plan: Plan | None) -> None:
    if state.local is not None:
        if action == "pause":
            await state.local.pause(state.live.name)
        elif plan is not None:
            state.local.start(plan)
    elif action == "start":
        await _start(client, state)
    else:
        await _annotate(client, state, "true" if action == "pause" else None)


async def _plan(client: Client, live: LiveCrd) -> Plan:
    facts = await run_preflight(client, live, via_status=False, concurrency=_CONCURRENCY)
    settle = 0.0 if facts.is_instar else seconds_to_settle(live, SETTLE, datetime.now(UTC))
    return Plan(live, facts, _CONCURRENCY, 0.0, forced=False, settle=settle)


def _document(state: MigrationState, plan: Plan | None) -> Object:
    return {
        "crd": state.live.name,
        "plan": None if plan is None else plan.to_json(),
        "engine": state.engine,
        "migration": _latest_of(state),
        "stale": state.stale,
        "actions": [
            {"action": action, "allowed": not reasons, "why": reasons}
            for action in ACTIONS
            for reasons in (blocks(state, action, plan),)
        ],
    }


def _latest_of(state: MigrationState) -> Object | None:
    if state.run is not None:
        return state.run.document()
    return None if state.migration is None else _migration_document(state, state.migration)


def _migration_document(state: MigrationState, migration: Object) -> Object:
    conditions = conditions_of(migration)
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


async def _start(client: Client, state: MigrationState) -> None:
    crd = state.live.crd
    body = {
        "apiVersion": f"{GROUP}/{state.api}",
        "kind": "StorageVersionMigration",
        "metadata": {"generateName": f"console-{crd.names.plural}-"},
        "spec": {"resource": {"group": crd.group, "resource": crd.names.plural}},
    }
    await client.post(resource_path(GROUP, str(state.api), PLURAL), body)


async def _annotate(client: Client, state: MigrationState, value: str | None) -> None:
    assert state.migration is not None
    path = resource_path(
        GROUP, str(state.api), PLURAL, name=str(state.migration["metadata"]["name"])
    )
    await client.patch(path, {"metadata": {"annotations": {PAUSED: value}}})


async def _trim(client: Client, state: MigrationState) -> None:
    status = CrdStatus(client, state.live, _BRIEF, "the console")
    why = await status.end(prune=True, message="")
    if why:
        raise refused_edit(f"storedVersions of {state.live.name} stays as it is", [why])


def _verified(reading: ReadCheckResult, stale: int | None) -> Object:
    return {
        "objects": reading.objects,
        "ok": not reading.stopped and not reading.problems and not stale,
        "stopped": reading.stopped,
        "stale": stale,
        "at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "problems": [{"object": key, "message": why} for key, why in reading.problems.items()],
    }
