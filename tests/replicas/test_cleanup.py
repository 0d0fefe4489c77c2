"""Work that every replica sees to, such as a CRD going away, harms nothing when done twice."""

from __future__ import annotations

import time

from tests.replicas.processes import Deployment, Replica, etcdctl
from tests.replicas.resources import CRDS, crd, note, path
from tests.replicas.test_consistency import create, create_crd, done


def until_gone(replica: Replica, where: str) -> None:
    deadline = time.monotonic() + 20
    while replica.request("GET", where).status != 404:
        assert time.monotonic() < deadline, f"{where} stays"
        time.sleep(0.02)


def test_objects_of_a_namespace_made_anew_survive_the_end_of_the_old_one(
    one: Replica, other: Replica
) -> None:
    group, where = "renewed.io", "/api/v1/namespaces"
    create_crd(one, group)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "phoenix"}}
    for _ in range(4):
        done(one.request("POST", where, body), 201)
        for number in range(20):
            obj = note(group, f"n{number}")
            done(one.request("POST", path(group, namespace="phoenix"), obj), 201)
        done(other.request("DELETE", f"{where}/phoenix"))
        until_gone(one, f"{where}/phoenix")
        done(other.request("POST", where, body), 201)
        done(other.request("POST", path(group, namespace="phoenix"), note(group, "n1")), 201)
        time.sleep(0.6)  # more than a round of the clean-up that might still be at it
        names = [
            item["metadata"]["name"]
            for item in done(one.request("GET", path(group, namespace="phoenix")))["items"]
        ]
        assert names == ["n1"]
        done(one.request("DELETE", f"{where}/phoenix"))
        until_gone(other, f"{where}/phoenix")


def test_objects_of_a_crd_made_anew_survive_the_end_of_the_old_one(
    one: Replica, other: Replica
) -> None:
    group = "again.io"
    for _ in range(3):
        create_crd(one, group)
        for number in range(60):
            create(one, group, f"n{number}")
        done(other.request("DELETE", f"{CRDS}/notes.{group}"))
        until_gone(one, f"{CRDS}/notes.{group}")
        create_crd(other, group)
        create(other, group, "n1")
        time.sleep(1.2)
        names = [i["metadata"]["name"] for i in done(one.request("GET", path(group)))["items"]]
        assert names == ["n1"]
        done(one.request("DELETE", f"{CRDS}/notes.{group}"))
        until_gone(other, f"{CRDS}/notes.{group}")


def test_the_initial_namespaces_are_made_once_by_replicas_that_start_together(
    pair: Deployment, one: Replica, other: Replica
) -> None:
    uids = [
        {
            item["metadata"]["name"]: item["metadata"]["uid"]
            for item in done(replica.request("GET", "/api/v1/namespaces"))["items"]
        }
        for replica in (one, other)
    ]
    assert uids[0] == uids[1]
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= set(uids[0])
    address = pair.cluster.addresses[0]
    stored = etcdctl(address, "get", "/registry/core/namespaces/default", "-w", "fields")
    assert b'"Version" : 1\n' in stored


def test_a_crd_is_settled_by_both_and_every_state_is_written_once(
    one: Replica, other: Replica
) -> None:
    group = "settled.io"
    done(one.request("POST", CRDS, crd(group)), 201)
    settled = done(other.request("GET", f"{CRDS}/notes.{group}"))
    conditions = settled["status"]["conditions"]
    kinds = [condition["type"] for condition in conditions]
    assert sorted(kinds) == ["Established", "NamesAccepted"]
    revision = settled["metadata"]["resourceVersion"]
    time.sleep(1.2)  # the retry of whoever lost the race
    again = done(other.request("GET", f"{CRDS}/notes.{group}"))
    assert again["metadata"]["resourceVersion"] == revision
