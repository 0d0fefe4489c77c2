"""Many objects, killed and resumed in the middle, while others read and write.

``INSTAR_MIGRATE_OBJECTS`` sets how many; a release is tried with 10 000.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from instar.base.errors import ApiError, Conflict
from instar.base.json_values import Object
from instar.tools.migrator.content_diff import digest
from tests.migrator.running import command
from tests.migrator.support import (
    census,
    client,
    crd,
    fill,
    name_of,
    objects_path,
    store_at,
    stored_versions,
)
from tests.storage.etcd_server import EtcdCluster
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually
from tests.support.webhook import Webhook

OBJECTS = int(os.environ.get("INSTAR_MIGRATE_OBJECTS", "1200"))
BUSY = 50
"""The first objects are written by others all the time."""


@pytest.fixture(params=["sqlite", "etcd"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:{tmp_path / 'instar.db'}"
        return
    with EtcdCluster(tmp_path, members=1) as cluster:
        yield f"etcd://{cluster.members[0].address}/many"


def to_hub(obj: Object, wanted: str) -> Object:
    """v1beta1 has ``host`` and ``port``; v1 has them in one field."""
    spec = dict(obj["spec"])
    if wanted.endswith("/v1") and "address" not in spec:
        spec["address"] = f"{spec.pop('host', '')}:{spec.pop('port', '')}"
    elif wanted.endswith("/v1beta1") and "address" in spec:
        spec["host"], _, spec["port"] = spec.pop("address").partition(":")
    return {**obj, "apiVersion": wanted, "spec": spec}


def _contents(server: LiveServer, definition: Object) -> dict[tuple[str, str], str]:
    """The digest of every quiet object at every version."""
    found: dict[tuple[str, str], str] = {}

    async def work() -> None:
        async with client(server) as api:
            for version in ("v1", "v1beta1"):
                async for page in api.pages(objects_path(definition, version), limit=500):
                    for obj in page["items"]:
                        if int(obj["metadata"]["name"][1:]) >= BUSY:
                            found[(version, obj["metadata"]["name"])] = digest(obj)

    asyncio.run(work())
    return found


@contextmanager
def others(server: LiveServer, definition: Object) -> Iterator[list[ApiError]]:
    """Clients of both versions at work until the end of the block; what went wrong for them."""
    failures: list[ApiError] = []
    stop = threading.Event()

    async def write(version: str, step: int) -> None:
        number = 0
        async with client(server, user_agent="busy") as api:
            while not stop.is_set():
                number += step
                path = objects_path(definition, version, f"w{number % BUSY:05d}")
                try:
                    obj = await api.get(path)
                    obj["metadata"].setdefault("annotations", {})[version] = str(number)
                    await api.put(path, obj)
                    await api.list(objects_path(definition, version), limit=20)
                except Conflict:
                    continue
                except ApiError as error:
                    failures.append(error)
                await asyncio.sleep(0.01)

    async def work() -> None:
        await asyncio.gather(write("v1beta1", 3), write("v1", 7))

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    try:
        yield failures
    finally:
        stop.set()
        thread.join(30)


def _killed_in_the_middle(server: LiveServer, definition: Object, words: list[str]) -> None:
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        eventually(lambda: census(server, definition)["v1"] > OBJECTS // 3, within=120)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL, "it was done before it could be killed"


def test_killed_and_resumed_while_others_read_and_write(storage: str, tmp_path: Path) -> None:
    with live_server(storage=storage, cert_dir=tmp_path / "pki") as server:
        definition = crd()
        server.create_crd(definition)
        fill(server, definition, OBJECTS)
        store_at(server, definition, "v1")
        before = _contents(server, definition)
        report = tmp_path / "report.json"
        words = command(server, "migrate", name_of(definition), "--page", "200")
        words += ["--progress", str(tmp_path / "progress"), "--report", str(report)]
        with others(server, definition) as failures:
            _killed_in_the_middle(server, definition, words)
            assert stored_versions(server, definition) == ["v1beta1", "v1"]

            finished = subprocess.run(words, capture_output=True, text=True, check=False)

        assert finished.returncode == 0, finished.stdout + finished.stderr
        (document,) = json.loads(report.read_text())
        assert document["resumed"]
        assert document["verification"]["differing"] == 0
        assert sum(document["objects"].values()) == OBJECTS
        assert failures == []
        assert _contents(server, definition) == before
        assert census(server, definition) == {"v1": OBJECTS}
        assert stored_versions(server, definition) == ["v1"]
        assert not (tmp_path / "progress").exists()


def test_a_slow_webhook_that_fails_for_one_in_a_hundred(tmp_path: Path) -> None:
    count = OBJECTS // 4
    with live_server(storage=f"sqlite:{tmp_path / 'instar.db'}") as server, Webhook() as hook:
        hook.convert = to_hub
        definition = crd(conversion=hook.conversion())
        for item in definition["spec"]["versions"]:
            spec = item["schema"]["openAPIV3Schema"]["properties"]["spec"]
            spec["x-kubernetes-preserve-unknown-fields"] = True
        server.create_crd(definition)
        fill(server, definition, count)
        store_at(server, definition, "v1")
        before = _contents(server, definition)
        calls = 0

        def unlucky(obj: Object, wanted: str) -> Object:
            nonlocal calls
            calls += 1
            if calls % 100 == 0:
                time.sleep(0.005)
                raise RuntimeError("one in a hundred")
            return to_hub(obj, wanted)

        hook.convert = unlucky
        words = command(server, "migrate", name_of(definition), "--page", "50")
        words += ["--progress", str(tmp_path / "progress"), "--retries", "8"]
        finished = subprocess.run(words, capture_output=True, text=True, check=False)

        assert finished.returncode == 0, finished.stdout + finished.stderr
        hook.convert = to_hub
        assert _contents(server, definition) == before
        assert census(server, definition) == {"v1": count}


def test_memory_does_not_grow_with_the_number_of_objects(tmp_path: Path) -> None:
    peaks = {}
    for count in (200, OBJECTS):
        with live_server(storage=f"sqlite:{tmp_path / f'{count}.db'}") as server:
            definition = crd()
            server.create_crd(definition)
            fill(server, definition, count)
            store_at(server, definition, "v1")
            words = command(server, "migrate", name_of(definition), "--page", "100")
            words += ["--progress", str(tmp_path / f"{count}.progress")]
            code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
            code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
            measured = subprocess.run(
                [words[0], "-c", code, *words], capture_output=True, text=True, check=True
            )
            peaks[count] = int(measured.stdout.split()[-1])

    small, large = peaks.values()
    assert large < small + 8_000, f"kilobytes: {peaks}"
