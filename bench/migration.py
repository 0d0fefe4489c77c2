"""Measures the time of a migration, compared with one PUT at a time by the ``kubernetes`` client.

    python -m bench.migration 10000 [sqlite|etcd]

The server runs in a separate process.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from bench.process import serving
from instar.base.json_values import Object
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import load_access
from instar.wire.client.paths import crd_path
from tests.migrator.support import crd, group_of, name_of, objects_path, widget
from tests.storage.etcd_server import EtcdCluster


async def _prepared(kubeconfig: Path, definition: Object, count: int) -> None:
    """Create ``count`` objects stored at v1beta1, then make v1 the storage version."""
    async with Client(load_access(kubeconfig)) as api:
        await api.post(crd_path(), definition)
        limit = asyncio.Semaphore(32)

        async def one(number: int) -> None:
            async with limit:
                await api.post(objects_path(definition, "v1beta1"), widget(definition, number))

        await asyncio.gather(*(one(number) for number in range(count)))
        versions = [
            {**item, "storage": item["name"] == "v1"} for item in definition["spec"]["versions"]
        ]
        await api.patch(crd_path(name_of(definition)), {"spec": {"versions": versions}})


async def _census(kubeconfig: Path, definition: Object) -> Object:
    async with Client(load_access(kubeconfig)) as api:
        found: Object = (await api.get("/instar/census"))["crds"][name_of(definition)]["objects"]
        return found


def _by_instar(*flags: str) -> Callable[[Path, Object], None]:
    def migrate(kubeconfig: Path, definition: Object) -> None:
        words = [sys.executable, "-m", "instar", "migrate", name_of(definition)]
        words += ["--kubeconfig", str(kubeconfig), "--output", "json", *flags]
        state = {**os.environ, "XDG_STATE_HOME": str(kubeconfig.parent / "state")}
        done = subprocess.run(words, env=state, check=True, capture_output=True, text=True)
        assert json.loads(done.stdout)[0]["ok"]

    return migrate


def _by_kubernetes_client(kubeconfig: Path, definition: Object) -> None:
    kubernetes: Any = importlib.import_module("kubernetes")
    kubernetes.config.load_kube_config(str(kubeconfig))
    api = kubernetes.client.CustomObjectsApi()
    where = (group_of(definition), "v1", "default", "widgets")
    token = None
    while True:
        page = api.list_namespaced_custom_object(*where, limit=500, _continue=token or "")
        for obj in page["items"]:
            api.replace_namespaced_custom_object(*where, obj["metadata"]["name"], obj)
        token = page["metadata"].get("continue")
        if not token:
            return


def _by_the_server(kubeconfig: Path, definition: Object) -> None:
    async def work() -> None:
        asked = {"group": group_of(definition), "resource": "widgets"}
        path = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
        name = group_of(definition)
        body = {
            "apiVersion": "storagemigration.k8s.io/v1",
            "kind": "StorageVersionMigration",
            "metadata": {"name": name},
            "spec": {"resource": asked},
        }
        async with Client(load_access(kubeconfig)) as api:
            await api.post(path, body)
            while True:
                status = (await api.get(f"{path}/{name}")).get("status") or {}
                true = [i["type"] for i in status.get("conditions") or () if i["status"] == "True"]
                if "Succeeded" in true:
                    return
                await asyncio.sleep(0.05)

    asyncio.run(work())


WAYS: dict[str, Callable[[Path, Object], None]] = {
    "instar migrate": _by_instar(),
    "instar migrate --no-verify": _by_instar("--no-verify"),
    "instar migrate --concurrency 32": _by_instar("--concurrency", "32"),
    "StorageVersionMigration": _by_the_server,
    "kubernetes client, PUT by PUT": _by_kubernetes_client,
}


def _busy() -> float:
    """Return the CPU time of the client: this process and its finished children."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, kinds))


def main() -> None:
    count = int(sys.argv[1])
    engine = sys.argv[2] if len(sys.argv) > 2 else "sqlite"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cluster = EtcdCluster(folder, members=1) if engine == "etcd" else nullcontext()
        with cluster as etcd:
            storage = f"sqlite:{folder / 'instar.db'}"
            if etcd is not None:
                storage = f"etcd://{etcd.members[0].address}/measured"
            with serving(storage, folder, "--cert-dir", str(folder / "pki")):
                kubeconfig = folder / "kubeconfig"
                for way, migrate in WAYS.items():
                    definition = crd()
                    asyncio.run(_prepared(kubeconfig, definition, count))
                    began, busy = time.monotonic(), _busy()
                    migrate(kubeconfig, definition)
                    took, used = time.monotonic() - began, _busy() - busy
                    assert asyncio.run(_census(kubeconfig, definition)) == {"v1": count}
                    print(
                        f"{way:34} {took:7.1f} s  {count / took:7.0f}/s  client CPU {used:5.1f} s",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
