"""State of a CRD's migration, and the actions that the console offers in that state.

The state is read once; pure functions derive the actions from it. Used by ``views/migration.py``.
"""

from __future__ import annotations

from instar.base.errors import Forbidden, NotFound
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.tools.console.local_migrations import LocalMigrations, LocalRun
from instar.tools.console.views.permissions import Wanted, missing
from instar.tools.console.views.server_facts import MissingDocuments, read_document
from instar.tools.migrator.census.version_census import StoredVersionCensus, exact_census
from instar.tools.migrator.live_crd import LiveCrd, read_live_crd
from instar.tools.migrator.plan import Plan
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path, resource_path

GROUP, PLURAL = "storagemigration.k8s.io", "storageversionmigrations"
VERSIONS = ("v1", "v1beta1")
PAUSED = "instar.dev/paused"
"""Annotation of a migration that is paused."""


@dataclass(frozen=True)
class MigrationState:
    """Everything that decides which actions are possible."""

    live: LiveCrd
    api: str | None
    """Version of the migration API; None if the cluster has none."""
    migration: Object | None
    progress: Object | None
    census: StoredVersionCensus | None
    forbidden: dict[str, list[str]]
    """By action: permissions that the visitor lacks."""
    local: LocalMigrations | None = None
    """Set where the console runs migrations itself, because the cluster cannot."""

    @property
    def stale(self) -> int | None:
        return None if self.census is None else self.census.stale(self.live.storage)

    @property
    def run(self) -> LocalRun | None:
        return None if self.local is None else self.local.of(self.live.name)

    @property
    def engine(self) -> str | None:
        if self.local is not None:
            return "local"
        return None if self.api is None else "server"

    @property
    def phase(self) -> str | None:
        if self.run is not None:
            return self.run.state
        return None if self.migration is None else phase_of(self.migration)


async def read_state(client: Client, name: str, local: LocalMigrations | None) -> MigrationState:
    live = read_live_crd(await client.get(crd_path(name)))
    api, listed = await _migrations(client)
    found = _latest(listed, live)
    record = await read_document(client, "migrations", MissingDocuments())
    known = (record or {}).get("migrations") or {}
    census = await exact_census(client)
    if api is not None:
        local = None
    by_server: dict[str, Wanted] = {
        "start": ("create", GROUP, PLURAL, ""),
        "pause": ("patch", GROUP, PLURAL, ""),
        "resume": ("patch", GROUP, PLURAL, ""),
    }
    wanted: dict[str, Wanted] = {
        **(by_server if local is None else {}),
        "trim": ("patch", "apiextensions.k8s.io", "customresourcedefinitions", "status"),
    }
    return MigrationState(
        live,
        api,
        found,
        None if found is None else known.get(found["metadata"]["name"]),
        None if census is None else census.get(live.name),
        await missing(client, wanted),
        local,
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
    """Return the active migration, else the latest."""
    mine = [item for item in listed if _is_about(item, live)]
    return max(mine, key=_recency, default=None)


def _is_about(item: Object, live: LiveCrd) -> bool:
    asked = (item.get("spec") or {}).get("resource") or {}
    return (asked.get("group"), asked.get("resource")) == (live.crd.group, live.crd.names.plural)


def _recency(item: Object) -> tuple[bool, str, str]:
    metadata = item["metadata"]
    over = phase_of(item) in ("succeeded", "failed")
    return not over, metadata.get("creationTimestamp", ""), metadata["name"]


def blocks(state: MigrationState, action: str, plan: Plan | None) -> list[str]:
    """Return the reasons why an action is not possible now; empty if it is."""
    found = [f"you may not {right}" for right in state.forbidden.get(action, ())]
    phase = state.phase
    under_way = phase in ("waiting", "running", "paused")
    if action in ("start", "pause", "resume") and state.engine is None:
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
            elif state.local is None and state.census is None:
                found.append("this server cannot pause a migration; delete it instead")
        case "resume":
            found += [] if phase == "paused" else ["no migration is paused"]
            found += [] if plan is None else plan.obstacles
        case "verify":
            found += [f"a migration is {phase}; wait for it"] if phase == "running" else []
            found += [] if state.live.crd.served() else ["no version is served"]
        case "trim":
            found += _trim_blocks(state, under_way=under_way)
    return found


def _trim_blocks(state: MigrationState, *, under_way: bool) -> list[str]:
    live = state.live
    if not live.old_versions:
        return [f"status.storedVersions names {live.storage} only"]
    found = [f"a migration is {state.phase}"] if under_way else []
    if state.stale is None:
        found.append(
            "this server does not report stored versions; run instar migrate, which proves "
            "it and trims"
        )
    elif state.stale:
        versions = ", ".join(live.old_versions)
        found.append(f"{counted(state.stale, 'object')} may be stored at {versions}")
    return found


def phase_of(migration: Object) -> str:
    """Return the phase that the page shows, from conditions and the pause annotation."""
    if _is_true(migration, "Succeeded"):
        return "succeeded"
    if _is_true(migration, "Failed"):
        return "failed"
    annotations = migration["metadata"].get("annotations") or {}
    if annotations.get(PAUSED) == "true":
        return "paused"
    return "running" if _is_true(migration, "Running") else "waiting"


def _is_true(migration: Object, type: str) -> bool:
    conditions = conditions_of(migration)
    return any(item["type"] == type and item["status"] == "True" for item in conditions)


def conditions_of(migration: Object) -> list[Object]:
    return (migration.get("status") or {}).get("conditions") or []
