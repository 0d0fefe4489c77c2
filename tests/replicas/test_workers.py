"""``--workers``: several processes behind one port keep the promises of one."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from instar.base.supervision import Supervision
from instar.cli.commands.serve import once_readable
from instar.cli.main import main
from instar.cli.serving.workers import Worker
from instar.server.endpoints.metrics import Metrics
from instar.server.http.connection_balancer import SOCKET
from instar.server.lifecycle.metrics_merge import merge_worker_metrics
from instar.wire.storage.memory import MemoryStore
from instar.wire.storage.workers.store_server import StoreServer
from tests.replicas.checker import Checker
from tests.replicas.client import Client
from tests.replicas.processes import TOKEN, Replica, etcdctl, prepare_pki
from tests.replicas.resources import CRDS, crd, note, path
from tests.storage.etcd_server import EtcdCluster
from tests.storage.postgres_server import PostgresNode
from tests.support.waiting import eventually

WORKERS = 3
CONNECTIONS = 8
"""The kernel gives each to one of the processes: of so many hardly all go to the same."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd"), members=1) as cluster:
        yield cluster


@pytest.fixture(params=["sqlite", "etcd", "postgres"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/s.db"
    if request.param == "postgres":
        node: PostgresNode = request.getfixturevalue("postgres")
        return node.url(f"w{uuid.uuid4().hex}")
    cluster: EtcdCluster = request.getfixturevalue("cluster")
    return f"etcd://{','.join(cluster.addresses)}/{uuid.uuid4()}"


@pytest.fixture
def served(tmp_path: Path, storage: str) -> Iterator[Replica]:
    prepare_pki(tmp_path)
    extra = ("--workers", str(WORKERS))
    replica = Replica(tmp_path, "main", storage, extra)
    replica.start()
    try:
        replica.until_ready()
        eventually(lambda: counted(replica)["instar_processes"] == WORKERS)
        yield replica
    finally:
        replica.kill()


def workers_of(replica: Replica) -> list[int]:
    assert replica.process is not None
    pid = replica.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Many:
    """Kept connections to whichever process took them."""

    def __init__(self, replica: Replica) -> None:
        self._connections = [replica.connection() for _ in range(CONNECTIONS)]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def ask(self, at: int, method: str, where: str, body: Any = None) -> tuple[int, Any]:
        connection: http.client.HTTPSConnection = self._connections[at % CONNECTIONS]
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body)
        connection.request(method, where, body=data, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def ready(self, at: int) -> int:
        connection: http.client.HTTPSConnection = self._connections[at]
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        answer.read()
        return answer.status


@pytest.fixture
def many(served: Replica) -> Iterator[Many]:
    connections = Many(served)
    yield connections
    connections.close()


def test_an_acknowledged_write_is_visible_on_every_connection_at_once(many: Many) -> None:
    assert many.ask(0, "POST", CRDS, crd("seen.io"))[0] == 201
    for at in range(CONNECTIONS):
        assert many.ask(at, "GET", path("seen.io"))[0] == 200

    for number in range(CONNECTIONS * 4):
        name = f"n{number}"
        status, made = many.ask(number, "POST", path("seen.io"), note("seen.io", name))
        assert status == 201
        for at in range(CONNECTIONS):
            status, found = many.ask(at, "GET", path("seen.io", name))
            assert (status, found) == (200, made)


def test_a_write_is_validated_by_a_crd_that_another_worker_changed(many: Many) -> None:
    many.ask(0, "POST", CRDS, crd("judged.io"))
    _, definition = many.ask(0, "GET", f"{CRDS}/notes.judged.io")
    for number in range(CONNECTIONS * 2):
        spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["count"]["maximum"] = 100 - number
        status, definition = many.ask(number, "PUT", f"{CRDS}/notes.judged.io", definition)
        assert status == 200
        for at in range(CONNECTIONS):
            refused = note("judged.io", f"n{number}-{at}", count=101 - number)
            assert many.ask(at, "POST", path("judged.io"), refused)[0] == 422


def test_every_page_of_a_list_may_come_from_another_process(many: Many) -> None:
    many.ask(0, "POST", CRDS, crd("pages.io"))
    for number in range(10):
        many.ask(number, "POST", path("pages.io"), note("pages.io", f"n{number}"))

    names, token, at = [], "", 0
    while True:
        _, page = many.ask(at, "GET", f"{path('pages.io')}?limit=3&continue={token}")
        names += [item["metadata"]["name"] for item in page["items"]]
        token, at = page["metadata"].get("continue", ""), at + 1
        if not token:
            break
        many.ask(at, "POST", path("pages.io"), note("pages.io", f"later{at}"))

    assert names == sorted(f"n{number}" for number in range(10))


def test_nothing_is_lost_or_doubled_while_workers_are_killed(served: Replica) -> None:
    async def run() -> Checker:
        async with Client.over([served] * 2) as client:
            checker = Checker(client, "killed.io")
            await checker.start(writers=6)
            for _ in range(2):
                await checker.more_acknowledged(60)
                os.kill(workers_of(served)[0], signal.SIGKILL)
            await checker.more_acknowledged(60)
            await checker.finish()
            return checker

    checker = asyncio.run(run())
    assert checker.reads


def test_objects_lie_in_memory_that_all_processes_share(served: Replica, many: Many) -> None:
    many.ask(0, "POST", CRDS, crd("shared.io"))
    for at in range(CONNECTIONS):
        many.ask(at, "POST", path("shared.io"), note("shared.io", f"n{at}"))
        assert len(many.ask(at, "GET", path("shared.io"))[1]["items"]) == at + 1

    assert served.process is not None
    for pid in (served.process.pid, *workers_of(served)):
        mapped = Path(f"/proc/{pid}/maps").read_text().count("/memfd:instar-values")
        assert mapped == 2  # how it begins, and a segment


def test_a_read_is_answered_although_writes_continue_elsewhere(
    cluster: EtcdCluster, tmp_path: Path
) -> None:
    prepare_pki(tmp_path)
    (address,) = cluster.addresses
    extra = ("--workers", str(WORKERS))
    replica = Replica(tmp_path, "main", f"etcd://{address}/{uuid.uuid4()}", extra)
    replica.start()
    try:
        replica.until_ready()
        eventually(lambda: counted(replica)["instar_processes"] == WORKERS)
        many = Many(replica)
        for at in range(CONNECTIONS):
            etcdctl(address, "put", "/elsewhere", str(at))
            assert many.ask(at, "GET", "/api/v1/namespaces/default")[0] == 200
        many.close()
    finally:
        replica.kill()


def test_a_worker_that_dies_is_replaced(served: Replica) -> None:
    before = workers_of(served)
    assert len(before) == WORKERS - 1
    os.kill(before[0], signal.SIGKILL)

    eventually(
        lambda: len(workers_of(served)) == WORKERS - 1 and before[0] not in workers_of(served)
    )
    assert served.request("GET", "/api/v1/namespaces").status == 200


def test_a_new_worker_is_ready_although_an_initial_object_was_deleted(served: Replica) -> None:
    [first, *_] = workers_of(served)
    level = "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical"
    assert served.request("DELETE", level).status == 200
    os.kill(first, signal.SIGKILL)
    eventually(lambda: len(workers_of(served)) == WORKERS - 1 and first not in workers_of(served))
    eventually(lambda: counted(served)["instar_processes"] == WORKERS)

    many = Many(served)
    answers = {many.ready(at) for at in range(CONNECTIONS)}
    many.close()

    assert answers == {200}


def counted(served: Replica) -> dict[str, float]:
    text = served.request("GET", "/metrics").body.decode()
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels in ({}, {"method": "POST"}, {"method": "POST", "code": "201"})
    }


def test_metrics_are_those_of_all_workers_and_keep_counts_of_dead_ones(
    served: Replica, many: Many
) -> None:
    assert counted(served)["instar_processes"] == WORKERS
    many.ask(0, "POST", CRDS, crd("counted.io"))
    for number in range(CONNECTIONS * 2):
        many.ask(number, "POST", path("counted.io"), note("counted.io", f"n{number}"))

    made = counted(served)["apiserver_request_total"]
    for pid in workers_of(served):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: counted(served)["instar_processes"] == WORKERS)
    after = counted(served)

    assert made == CONNECTIONS * 2 + 1
    assert after["apiserver_request_total"] == made
    assert after["apiserver_request_duration_seconds_count"] == made


def test_all_workers_end_when_the_first_process_is_killed_and_acknowledged_writes_survive(
    served: Replica, many: Many
) -> None:
    many.ask(0, "POST", CRDS, crd("stays.io"))
    for number in range(CONNECTIONS):
        assert many.ask(number, "POST", path("stays.io"), note("stays.io", f"n{number}"))[0] == 201
    workers = workers_of(served)

    served.kill()
    eventually(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers))
    served.start()
    served.until_ready()

    listed = served.request("GET", path("stays.io")).json["items"]
    assert len(listed) == CONNECTIONS


def test_a_stop_is_orderly(served: Replica) -> None:
    workers = workers_of(served)

    assert served.stop() == 0

    assert not any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers)


def test_a_worker_started_by_hand_is_a_wrong_call() -> None:
    command = [sys.executable, "-m", "instar", "serve", "--worker-of", "/nowhere"]

    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"--worker-of" in done.stderr


def test_a_worker_without_settings_exits(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", "instar", "serve", "--worker-of", str(tmp_path)]

    done = subprocess.run(command, input=b"", capture_output=True, timeout=60)

    assert (done.returncode, done.stdout) == (1, b"")


def test_no_workers_at_all_is_a_wrong_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--storage", "memory:", "--workers", "0"]) == 2
    assert "--workers 0" in capsys.readouterr().err


def test_a_worker_ends_when_its_store_hangs_up_on_it(tmp_path: Path) -> None:
    """While the first process lives on: it starts another, which has a store again."""

    async def scenario() -> tuple[bytes, int]:
        lender = StoreServer(MemoryStore(), tmp_path)
        await lender.start()
        meeting = await asyncio.start_unix_server(lambda _, end: end.close(), tmp_path / SOCKET)
        async with merge_worker_metrics(Metrics(), tmp_path, Supervision()), meeting:
            worker = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "instar", "serve", "--storage", "memory:"),
                *("--worker-of", str(tmp_path)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.write(orjson.dumps(["127.0.0.1:0", str(tmp_path / "pki")]) + b"\n")
            ready = await asyncio.wait_for(worker.stdout.readline(), 30)

            await lender.close()

            try:
                return ready, await asyncio.wait_for(worker.wait(), 30)
            except TimeoutError:
                worker.kill()
                raise

    ready, code = asyncio.run(scenario())
    assert (ready[:15], code) == (b"instar is ready", 1)


def test_a_worker_whose_first_process_ends_is_stopped_once_and_may_finish() -> None:
    async def scenario() -> int:
        read, write = os.pipe()
        os.close(write)
        stops, loop = 0, asyncio.get_running_loop()

        def stop() -> None:
            nonlocal stops
            stops += 1
            loop.call_later(0.05, stopped.set)  # as long as the end of the pipe could be read

        stopped = asyncio.Event()
        once_readable(loop, read, stop)
        await asyncio.wait_for(stopped.wait(), 30)
        os.close(read)
        return stops

    assert asyncio.run(scenario()) == 1


def test_a_worker_may_print_more_than_its_pipe_holds(tmp_path: Path) -> None:
    done = tmp_path / "done"
    program = (
        "import pathlib, sys\n"
        "print('ready', flush=True)\n"
        "for _ in range(1000): print('x' * 1000)\n"
        f"pathlib.Path({str(done)!r}).touch()\n"
        "sys.stdin.read()\n"
    )

    async def scenario() -> None:
        worker = Worker([sys.executable, "-c", program])
        await worker.start()
        try:
            await asyncio.to_thread(eventually, done.exists)
        finally:
            await worker.stop()

    asyncio.run(scenario())


def test_the_port_of_another_servers_workers_is_not_shared(served: Replica) -> None:
    listen = f"127.0.0.1:{served.port}"
    command = [sys.executable, "-m", "instar", "serve", "--storage", "memory:", "--listen", listen]

    second = subprocess.run([*command, "--workers", "2"], stderr=subprocess.PIPE, timeout=60)

    assert second.returncode == 1
    assert b"Address already in use" in second.stderr
