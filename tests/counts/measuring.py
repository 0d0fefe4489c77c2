"""All rows of the table, measured: each on a server of its own making, in this process."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from bench.fixtures import BASE, CRDS, GROUP, OTHER, PLURAL, crd, thing
from bench.operations import OPERATIONS, WATCHERS, stage
from bench.wire import Wire, wires
from instar.server.lifecycle.lifetime import running
from instar.server.settings import Settings
from instar.wire.storage.sqlite.store import SqliteStore
from tests.counts.counting import ROUNDS, kept, per_request
from tests.storage.etcd_server import EtcdCluster
from tests.support.admission import AdmissionHook, configuration
from tests.support.webhook import Webhook

Row = dict[str, Any]
AT_ONCE = 32
_OBJECTS = 100
_CREATES = {
    "operations": ["CREATE"],
    "apiGroups": [GROUP],
    "apiVersions": ["v1"],
    "resources": [PLURAL],
}


def measured() -> dict[str, Row]:
    """By the names of the table's rows. Rows that need etcd are left out where there is none."""
    with tempfile.TemporaryDirectory(prefix="instar-counts-") as name:
        folder = Path(name)
        rows = asyncio.run(_requests())
        rows |= asyncio.run(_commits(folder))
        rows |= asyncio.run(_reviews())
        rows |= asyncio.run(_admission())
        try:
            with EtcdCluster(folder, members=1) as cluster:
                rows |= asyncio.run(_etcd(cluster.addresses[0]))
        except pytest.skip.Exception:
            pass
    return rows


async def _requests() -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for name, operation in OPERATIONS.items():
        async with stage() as on:  # each its own: what came before leaves traces
            step = await operation.prepare(on)
            row = _told(await per_request(step))
            before, heard = on.wire.writes, [each.writes for each in on.watchers]
            await step(50)
            row["writes"] = on.wire.writes - before
            if name == "patch, watched":
                sent = sum(each.writes for each in on.watchers) - sum(heard)
                row["writes per watcher"] = round(sent / WATCHERS)
            row["kept blocks"] = await kept(step)
        rows[name] = row
    return rows


def _told(found: dict[str, int]) -> Row:
    packages = {
        name.partition(":")[2]: n for name, n in found.items() if name.startswith("package:")
    }
    wanted = ("calls", "calls into C", "decodes", "encodes")
    return {**{name: found.get(name, 0) for name in wanted}, "packages": packages}


async def _commits(folder: Path) -> dict[str, Row]:
    async with running(
        Settings(port=0, bootstrap_objects=False, storage=f"sqlite:{folder}/counts.db")
    ) as server:
        clients = wires(server, AT_ONCE)
        store = server.machinery.backend.store
        assert isinstance(store, SqliteStore)
        await clients[0].get("POST", CRDS, _json(crd()))
        await _create(clients[0])

        async def step(_: int) -> None:
            await _create(clients[0])

        before = store.commits
        alone = await per_request(step)
        singly = (store.commits - before) / (2 * ROUNDS)
        least = min([await _together(clients, store) for _ in range(5)])
    # On a quick disk the first commits on the spot, on a slow one it waits for the others.
    return {
        "sqlite, create alone": {
            "commits": round(singly),
            "statements": alone.get("statements", 0),
        },
        f"sqlite, {AT_ONCE} creates at once": {"commits": max(2, least)},
    }


async def _together(clients: list[Wire], store: SqliteStore) -> int:
    before = store.commits
    await asyncio.gather(*map(_create, clients))
    return store.commits - before


async def _reviews() -> dict[str, Row]:
    """What a conversion webhook is asked, and what it is not asked again."""
    with Webhook() as hook:
        settings = Settings(port=0, bootstrap_objects=False, convert_ahead=False)
        async with running(settings) as server:
            (client,) = wires(server, 1)
            made = crd()
            made["spec"]["conversion"] = hook.conversion()
            await client.get("POST", CRDS, _json(made))
            for _ in range(_OBJECTS):
                await _create(client)
            first = await _asked(hook, client, "GET", OTHER)
            again = await _asked(hook, client, "GET", OTHER)
            body = _json(thing("v1beta1"))
            create = await _asked(hook, client, "POST", OTHER, body)
    return {
        f"webhook, first list of {_OBJECTS}": {"reviews": first},
        "webhook, the same list again": {"reviews": again},
        "webhook, create at the other version": {"reviews": create},
    }


async def _asked(hook: Webhook, client: Wire, method: str, path: str, body: bytes = b"") -> int:
    hook.reset()
    await client.get(method, path, body)
    return hook.reviews


async def _admission() -> dict[str, Row]:
    with AdmissionHook() as hook:
        async with running(Settings(port=0, bootstrap_objects=False)) as server:
            (client,) = wires(server, 1)
            await client.get("POST", CRDS, _json(crd()))
            for kind in ("Mutating", "Validating"):
                path = "/apis/admissionregistration.k8s.io/v1"
                one = hook.webhook(f"{kind.lower()}.example.com", f"/{kind}", rules=[_CREATES])
                plural = f"{kind.lower()}webhookconfigurations"
                await client.get("POST", f"{path}/{plural}", _json(configuration(kind, one)))
            await _create(client)
            hook.reset()
            await _create(client)
            asked = hook.reviews
    return {"admission, a create with one webhook of each kind": {"reviews": asked}}


async def _etcd(address: str) -> dict[str, Row]:
    async with running(
        Settings(port=0, bootstrap_objects=False, storage=f"etcd://{address}/counts")
    ) as server:
        (client,) = wires(server, 1)
        await client.get("POST", CRDS, _json(crd()))

        async def create(_: int) -> None:
            await _create(client)

        async def get(_: int) -> None:
            await client.get("GET", f"{BASE}?limit=1")

        # What else is said to etcd meanwhile (a CRD that settles, a watch that is behind) ends.
        created, read = await per_request(create, 50), await per_request(get, 50)
    return {
        "etcd, create alone": {"etcd calls": created.get("etcd calls", 0)},
        "etcd, read": {"etcd calls": read.get("etcd calls", 0)},
    }


async def _create(client: Wire) -> None:
    await client.get("POST", BASE, _json(thing()))


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
