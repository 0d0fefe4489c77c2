"""A main cluster that proxies, and instar behind it: both are instar."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import uvloop

from instar.server.registry.controllers.controller_names import CONTROLLERS_HERE, GARBAGE, QUOTAS
from instar.server.settings import ClusterSettings
from instar.tools.adopter.cluster import MovedCluster
from instar.tools.adopter.journal import MoveJournal
from instar.tools.adopter.move import GroupMove, MoveOptions, Tell
from instar.tools.adopter.preparation import MoveRequest, prepare
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import load_access
from tests.support.main_cluster import GROUP, crd, report
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

T = TypeVar("T")
SERVICE = "instar"
V1, V2 = (f"/apis/{GROUP}/{version}/namespaces/default/reports" for version in ("v1", "v2"))
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


class MovableCluster(NamedTuple):
    main: LiveServer
    served: LiveServer
    folder: Path

    @property
    def request(self) -> MoveRequest:
        port = int(self.served.url.rpartition(":")[2])
        bundle = base64.b64encode(self.served.ca).decode()
        return MoveRequest(GROUP, ("default", SERVICE, port), bundle)

    def client(self) -> Client:
        return Client(load_access(self.main.kubeconfig))

    async def move(
        self, client: Client, tell: Tell, options: MoveOptions | None = None
    ) -> GroupMove:
        chosen = options or MoveOptions(in_flight=0.05)
        journal = MoveJournal(self.folder / "adopt.json", GROUP, self.main.url)
        cluster = MovedCluster(client, [client])
        return await prepare(cluster, self.request, journal, chosen, tell)

    def objects(self, path: str = V1) -> dict[str, dict[str, Any]]:
        """Objects by name as a client of the main cluster reads them, without resourceVersion."""
        listed = self.main.request("GET", path)
        assert listed.status == 200, listed.text
        items = listed.json["items"]
        for item in items:
            del item["metadata"]["resourceVersion"]
        return {item["metadata"]["name"]: item for item in items}

    def stored_by_instar(self) -> bool:
        """Whether instar answers for the group."""
        answer = self.main.request("GET", f"/apis/{GROUP}/v1")
        return any(name.lower() == "x-served-by" for name, _ in answer.headers)

    def create(self, name: str, **metadata: Any) -> dict[str, Any]:
        obj = report(name)
        obj["metadata"] |= metadata
        answer = self.main.request("POST", V1, obj)
        assert answer.status == 201, answer.text
        made: dict[str, Any] = answer.json
        return made


def run_as_command(work: Coroutine[Any, Any, T]) -> T:
    """Run on the event loop of the command, which closes connections when it ends."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


@contextmanager
def movable_cluster(
    folder: Path, *, served_storage: str = "memory:", **settings: Any
) -> Iterator[MovableCluster]:
    """A CRD with two versions and the subresource status, and three objects, of which one waits
    for its finalizer. ``settings`` are those of the main cluster."""
    with live_server(
        bootstrap_objects=True,
        cert_dir=folder / "main",
        controllers=CONTROLLERS_HERE - {QUOTAS, GARBAGE},  # its own sees its own objects alone
        **settings,
    ) as main:
        main.create_crd(_two_versions())
        path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        eventually(lambda: main.request("GET", path).status == 200)
        service = {"type": "ExternalName", "externalName": "localhost"}
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE}}
        made = main.request(
            "POST", "/api/v1/namespaces/default/services", {**body, "spec": service}
        )
        assert made.status == 201, made.text
        joined = ClusterSettings(kubeconfig=str(main.kubeconfig))
        with live_server(
            cluster=joined,
            storage=served_storage,
            cert_dir=folder / "served",
            extra_names=(f"{SERVICE}.default.svc",),
        ) as served:
            found = MovableCluster(main, served, folder)
            for name in ("a", "b"):
                found.create(name)
            found.create("held", finalizers=["example.com/wait"])
            assert main.request("DELETE", f"{V1}/held").status == 200
            yield found


def _two_versions() -> dict[str, Any]:
    made = crd()
    (first,) = made["spec"]["versions"]
    first["subresources"] = {"status": {}}
    first["schema"]["openAPIV3Schema"]["properties"]["status"] = {
        "type": "object",
        "properties": {"seen": {"type": "integer"}},
    }
    made["spec"]["versions"] = [first, {**first, "name": "v2", "storage": False}]
    return made


class Writers:
    """Writes until the end of the block; what was acknowledged must be found afterwards."""

    def __init__(self, cluster: MovableCluster) -> None:
        self._cluster = cluster
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.sizes: dict[str, int] = {}
        """The last acknowledged size by name."""
        self.refused: set[int] = set()
        self.unread = 0
        """Reads that were not answered with 200."""

    def __enter__(self) -> Writers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _write(self) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            name = f"w{number % 7}"
            patched = self._cluster.main.request(
                "PATCH", f"{V1}/{name}", {"spec": {"size": number}}, content_type=MERGE
            )
            if patched.status == 404:
                patched = self._cluster.main.request("POST", V1, report(name, number))
            if patched.status in (200, 201):
                self.sizes[name] = number
            else:
                self.refused.add(patched.status)
            self.unread += self._cluster.main.request("GET", f"{V2}/a").status != 200
