"""``python -m bench.aggregated [--objects 3000]``: the same group as CRDs in etcd, and served by
instar behind the aggregation layer, in one sitting.

Starts two control planes (etcd and a real kube-apiserver each, ``INSTAR_TEST_ETCD`` and
``INSTAR_KUBE_BIN``; etcd 3.6, or kube-apiserver cannot watch with initial events), one of them with
instar on SQLite behind it, gives both the same CRD, admission policy, quota and users, and measures
each line in turns on both: CPU of all server processes, and wall time seen by the client. The
ordinary user has its rights by RBAC, so that instar asks SubjectAccessReviews.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import yaml

from bench.process import cpu_seconds, scratch
from bench.reports import status
from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import load_access
from tests.storage.etcd_server import free_ports
from tests.support.real_cluster import RealCluster, real_cluster

GROUP = "bench.example.com"
_PATH = f"/apis/{GROUP}/v1/namespaces/default/reports"
_USERS = ("admin", "ordinary")
_TOKENS = {"admin": "admin-token", "ordinary": "ordinary-token"}
_AT_ONCE = 4
_INITIAL: dict[str, Any] = {
    "watch": True,
    "sendInitialEvents": True,
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": True,
}


class Cost(NamedTuple):
    """One measurement: CPU and wall time of one operation, in ms."""

    cpu: float
    wall: float


class Column(NamedTuple):
    """One way to serve the group."""

    name: str
    cluster: RealCluster
    clients: dict[str, Client]

    def pids(self) -> list[int]:
        """Return the processes of this control plane: each names a folder below its own."""
        marker = str(self.cluster.folder).encode() + b"/"
        found = []
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if marker in place.read_bytes():
                    found.append(int(place.parent.name))
        return found

    def cpu(self) -> float:
        return sum(map(cpu_seconds, self.pids()))

    def resident_mb(self) -> float:
        kilobytes = 0
        for pid in self.pids():
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                kilobytes += int(line.split()[1]) if line.startswith("VmRSS") else 0
        return kilobytes / 1024


Work = Callable[[Client], Awaitable[int]]
"""Does a number of operations, and returns it."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.aggregated", description=__doc__)
    parser.add_argument("--objects", type=int, default=3_000)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    with scratch() as folder, _planes(folder) as (first, second):
        asyncio.run(_measure((first, second), options.objects, options.turns))


@contextmanager
def _planes(folder: Path) -> Iterator[tuple[RealCluster, RealCluster]]:
    users = ("ordinary-token,ordinary,ordinary-uid",)
    first, second = folder / "etcd-crds", folder / "aggregated"
    for each in (first, second):
        each.mkdir()
    with real_cluster(first, users=users) as one, real_cluster(second, users=users) as two:
        for cluster in (one, two):
            _prepare(cluster)
        with _instar(two):
            yield one, two


def _prepare(cluster: RealCluster) -> None:
    for path, body in _objects():
        cluster.made(path, body)


def _objects() -> Iterator[tuple[str, Object]]:
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    finding = {"type": "array", "items": open_schema}
    spec = {"type": "object", "properties": {"count": {"type": "integer"}, "findings": finding}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    names = {"plural": "reports", "kind": "Report", "listKind": "ReportList", "singular": "report"}
    yield (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "metadata": {"name": f"reports.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
        },
    )
    rule = {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    yield f"{rbac}/clusterroles", {"metadata": {"name": "reports"}, "rules": [rule]}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ordinary"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reports"}
    body = {"metadata": {"name": "reports"}, "roleRef": role, "subjects": [subject]}
    yield f"{rbac}/clusterrolebindings", body
    quota = {"hard": {f"count/reports.{GROUP}": "1000000"}}
    yield (
        "/api/v1/namespaces/default/resourcequotas",
        {"metadata": {"name": "many"}, "spec": quota},
    )
    admission = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    writes = ["CREATE", "UPDATE"]
    matched = {"apiGroups": [GROUP], "apiVersions": ["*"], "operations": writes, "resources": ["*"]}
    policy = {
        "matchConstraints": {"resourceRules": [matched]},
        "validations": [{"expression": "!has(object.spec.count) || object.spec.count >= 0"}],
    }
    yield f"{admission}ies", {"metadata": {"name": "counts"}, "spec": policy}
    bound = {"policyName": "counts", "validationActions": ["Deny"]}
    yield f"{admission}ybindings", {"metadata": {"name": "counts"}, "spec": bound}
    service = {"type": "ExternalName", "externalName": "localhost"}
    yield "/api/v1/namespaces/default/services", {"metadata": {"name": "instar"}, "spec": service}


@contextmanager
def _instar(main_cluster: RealCluster) -> Iterator[None]:
    (port,) = free_ports(1)
    folder = main_cluster.folder / "instar"
    folder.mkdir()
    config = str(main_cluster.kubeconfig)
    command = [
        *(sys.executable, "-m", "instar", "serve", "--listen", f"127.0.0.1:{port}"),
        *("--cluster", config, "--groups", GROUP, "--storage", f"sqlite:{folder}/instar.db"),
        *("--cert-dir", f"{folder}/pki", "--kubeconfig", f"{folder}/kubeconfig"),
        *("--tls-name", "instar.default.svc"),
    ]
    adopt = [
        *(sys.executable, "-m", "instar", "adopt", GROUP, "--kubeconfig", config),
        *("--api-server", main_cluster.url, "--instar-service", f"default/instar:{port}"),
        *("--ca-file", f"{folder}/pki/ca.crt", "--journal", f"{folder}/journal.json"),
    ]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
    ):
        try:
            while not (folder / "kubeconfig").exists():
                time.sleep(0.1)
            subprocess.run(adopt, stdout=log, stderr=log, check=True)
            yield
        finally:
            process.terminate()


def _client(cluster: RealCluster, user: str) -> Client:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"]["token"] = _TOKENS[user]
    file = cluster.folder / f"{user}.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return Client(load_access(file))


async def _measure(clusters: Sequence[RealCluster], objects: int, turns: int) -> None:
    async with AsyncExitStack() as stack:
        columns = []
        for name, cluster in zip(("CRD in etcd", "instar"), clusters, strict=True):
            clients = {user: _client(cluster, user) for user in _USERS}
            for client in clients.values():
                await stack.enter_async_context(client)
            columns.append(Column(name, cluster, clients))
        _show("memory, empty, MB", *(column.resident_mb() for column in columns))
        chance = random.Random(2)
        reports = [status(chance)["findings"] for _ in range(200)]
        for number, user in enumerate(_USERS):
            each = objects // len(_USERS) // turns
            works = [
                _creates(reports, number * objects + turn * each, each) for turn in range(turns)
            ]
            await _line(f"create, {user}", columns, user, works)
        _show("memory, loaded, MB", *(column.resident_mb() for column in columns))
        for user in _USERS:
            await _line(f"get, {user}", columns, user, [_gets(objects, turns)] * turns)
            await _line(f"list limit=500, {user}", columns, user, [_pages] * turns)
            await _line(f"list of all, {user}", columns, user, [_whole] * turns)
            await _line(f"watch with initial events, {user}", columns, user, [_initial] * turns)
            await _line(f"patch until its event, {user}", columns, user, [_watched] * turns)
        _show("memory, after lists, MB", *(column.resident_mb() for column in columns))
        await asyncio.sleep(75)
        _show("memory, 75 s later, MB", *(column.resident_mb() for column in columns))


async def _line(name: str, columns: Sequence[Column], user: str, works: Sequence[Work]) -> None:
    costs: dict[str, list[Cost]] = {column.name: [] for column in columns}
    for work in works:
        for column in columns:
            cpu, began = column.cpu(), time.perf_counter()
            number = await work(column.clients[user])
            wall = time.perf_counter() - began
            spent = Cost(1e3 * (column.cpu() - cpu) / number, 1e3 * wall / number)
            costs[column.name].append(spent)
    middle = {
        key: [*map(statistics.median, zip(*found, strict=True))] for key, found in costs.items()
    }
    one, two = middle.values()
    _show(f"{name}, CPU ms", one[0], two[0])
    _show(f"{name}, wall ms", one[1], two[1])


def _show(name: str, one: float, two: float) -> None:
    print(f"{name:46} {one:10.2f} {two:10.2f}   {one / two if two else 0:5.1f} ×", flush=True)


def _creates(reports: Sequence[Any], first: int, count: int) -> Work:
    async def work(client: Client) -> int:
        turns = asyncio.Semaphore(_AT_ONCE)

        async def one(number: int) -> None:
            body = {
                "apiVersion": f"{GROUP}/v1",
                "kind": "Report",
                "metadata": {"name": f"r{number:06}"},
                "spec": {"count": number, "findings": reports[number % len(reports)]},
            }
            async with turns:
                await client.post(_PATH, body)

        await asyncio.gather(*(one(first + number) for number in range(count)))
        return count

    return work


def _gets(objects: int, turns: int) -> Work:
    each = objects // len(_USERS) // turns
    names = random.Random(3).sample(range(each * turns), 300)

    async def work(client: Client) -> int:
        for name in names:
            await client.get(f"{_PATH}/r{name:06}")
        return len(names)

    return work


async def _pages(client: Client) -> int:
    number = 0
    async for _ in client.pages(_PATH, limit=500):
        number += 1
    return number


async def _whole(client: Client) -> int:
    await client.list(_PATH, resourceVersion="0")
    return 1


async def _initial(client: Client) -> int:
    async for line in client.lines(_PATH, query=_INITIAL):
        if b"k8s.io/initial-events-end" in line:
            return 1
        assert b'"ERROR"' not in line[:60], line
    raise AssertionError("the watch ended before its initial events did")


async def _watched(client: Client) -> int:
    """Patch objects one after another, and wait for the event of each."""
    listed = await client.list(_PATH, limit=50)
    query: dict[str, Any] = {
        "watch": True,
        "resourceVersion": listed["metadata"]["resourceVersion"],
    }
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def watch() -> None:
        async for line in client.lines(_PATH, query=query):
            seen.put_nowait(orjson.loads(line)["object"]["metadata"]["name"])

    watching = asyncio.create_task(watch())
    names = [item["metadata"]["name"] for item in listed["items"]]
    for name in names:
        await client.patch(f"{_PATH}/{name}", {"spec": {"count": random.randrange(10**6)}})
        while await seen.get() != name:
            continue
    watching.cancel()
    with suppress(asyncio.CancelledError, ApiError):
        await watching
    return len(names)


if __name__ == "__main__":
    main()
