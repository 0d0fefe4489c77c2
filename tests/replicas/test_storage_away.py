"""A replica whose etcd is not there, not there any more, full, or has gone on without it."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.replicas.processes import Replica, etcdctl, prepare_pki
from tests.replicas.resources import CRDS, crd, note, path
from tests.replicas.test_consistency import create, create_crd, done
from tests.storage.etcd_server import EtcdCluster
from tests.storage.test_etcd_faults import make_room
from tests.support.server import Answer


def refused(answer: Answer) -> str:
    """503 as it must be: a Status that says when to come back."""
    assert answer.status == 503, answer.text
    assert answer.header("retry-after") == "1"
    assert answer.json["reason"] == "ServiceUnavailable"
    return str(answer.json["message"])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EtcdCluster]:
    """Not started; whoever needs it starts its member."""
    cluster = EtcdCluster(tmp_path, members=1)
    yield cluster
    cluster.members[0].kill()


@pytest.fixture
def replica(tmp_path: Path, cluster: EtcdCluster) -> Iterator[Replica]:
    prepare_pki(tmp_path)
    impatient = ("--etcd-timeout", "1")
    replica = Replica(tmp_path, "r", f"etcd://{cluster.addresses[0]}", impatient)
    yield replica
    replica.kill()


def test_it_waits_for_its_storage_and_says_so_before_and_after(
    cluster: EtcdCluster, replica: Replica
) -> None:
    member = cluster.members[0]
    replica.start()
    replica.until(lambda: replica.request("GET", "/livez").status == 200)
    replica.until(lambda: "etcd" in replica.request("GET", "/readyz").text)
    assert replica.request("GET", "/readyz").status == 500
    assert "waits for its storage" in refused(replica.request("GET", CRDS))

    cluster.start(member)
    replica.until_ready()
    create_crd(replica, "waits.io")
    replica.until(lambda: replica.request("GET", "/readyz").status == 200)

    member.kill()
    replica.until(lambda: replica.request("GET", "/readyz").status == 500)
    assert "unavailable" in refused(replica.request("GET", path("waits.io")))
    assert "unavailable" in refused(replica.request("GET", path("unknown.io")))
    done(replica.request("GET", path("waits.io") + "?resourceVersion=0"))
    body = note("waits.io", "a")
    assert "unavailable" in refused(replica.request("POST", path("waits.io"), body))

    cluster.start(member)
    replica.until_ready()
    replica.until(lambda: replica.request("GET", "/readyz").status == 200)
    create(replica, "waits.io", "b")
    assert replica.stop() == 0


def test_it_can_be_stopped_while_it_waits(replica: Replica) -> None:
    replica.start()
    replica.until(lambda: replica.request("GET", "/readyz").status == 500)
    assert replica.stop() == 0


def test_out_of_space_reads_continue_writes_are_refused_and_it_recovers(tmp_path: Path) -> None:
    prepare_pki(tmp_path)
    quota = ("--quota-backend-bytes", "3000000")
    with EtcdCluster(tmp_path, members=1, extra=quota) as cluster:
        replica = Replica(tmp_path, "r", f"etcd://{cluster.addresses[0]}")
        replica.start()
        try:
            replica.until_ready()
            create_crd(replica, "full.io")
            current = create(replica, "full.io", "a", last="")
            for number in range(200):
                changed = {**current, "spec": {"last": f"{number}" + "x" * 100_000}}
                answer = replica.request("PUT", path("full.io", "a"), changed)
                if answer.status != 200:
                    break
                current = answer.json
            assert "space exceeded" in refused(answer)
            # etcd may apply the very write it refuses first; 503 promises neither.
            current = done(replica.request("GET", path("full.io", "a")))
            assert current["spec"]["last"][:3].rstrip("x") in (f"{number}", f"{number - 1}")
            assert "space exceeded" in refused(
                replica.request("PUT", path("full.io", "a"), {**current, "spec": {"last": "no"}})
            )
            assert done(replica.request("GET", path("full.io", "a"))) == current

            revision = int(current["metadata"]["resourceVersion"])
            asyncio.run(make_room(cluster.addresses[0], revision))
            changed = {**current, "spec": {"last": "small"}}
            done(replica.request("PUT", path("full.io", "a"), changed))
        finally:
            replica.kill()


def test_a_replica_that_missed_a_compaction_loads_anew_and_ends_its_watches(
    cluster: EtcdCluster, replica: Replica, tmp_path: Path
) -> None:
    member, address = cluster.members[0], cluster.addresses[0]
    busy = Replica(tmp_path, "busy", f"etcd://{address}")
    cluster.start(member)
    busy.start()
    replica.start()
    try:
        busy.until_ready()
        replica.until_ready()
        create_crd(busy, "missed.io")
        first = create(busy, "missed.io", "a", last="old")
        listed = path("missed.io") + "?labelSelector=colour%3Dred"
        assert done(replica.request("GET", listed))["items"] == []
        revision = first["metadata"]["resourceVersion"]
        watching = replica.connection()
        headers = {"Authorization": "Bearer replicas"}
        query = f"?watch=1&resourceVersion={revision}"
        watching.request("GET", path("missed.io") + query, headers=headers)
        stream = watching.getresponse()

        # What comes after the member's restart is not in the buffers of the replica's connection.
        replica.signal(signal.SIGSTOP)
        member.kill()
        cluster.start(member)
        busy.until_ready()
        red = note("missed.io", "b", last="new")
        red["metadata"]["labels"] = {"colour": "red"}
        done(busy.request("POST", path("missed.io"), red), 201)
        done(busy.request("DELETE", path("missed.io", "a")))
        done(busy.request("POST", CRDS, crd("meanwhile.io")), 201)
        newest = create(busy, "meanwhile.io", "c")["metadata"]["resourceVersion"]
        etcdctl(address, "compact", newest)
        replica.signal(signal.SIGCONT)

        names = [i["metadata"]["name"] for i in done(replica.request("GET", listed))["items"]]
        assert names == ["b"]
        assert replica.request("GET", path("missed.io", "a")).status == 404
        done(replica.request("GET", path("meanwhile.io", "c")))
        events = [json.loads(line)["type"] for line in stream]  # returns: the stream has ended
        assert "ERROR" not in events
        again = replica.request("GET", path("missed.io") + query + "&timeoutSeconds=5")
        assert again.json["object"]["code"] == 410
        watching.close()
    finally:
        busy.kill()
