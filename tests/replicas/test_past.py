"""What an etcd has compacted, and what it still tells of the past, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.replicas.processes import Deployment, Replica, deployed, etcdctl
from tests.replicas.resources import path
from tests.replicas.test_consistency import create, create_crd, done


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder: Path = tmp_path_factory.mktemp("alone")
    with deployed(folder, members=1, replicas=1) as deployment:
        yield deployment


def _compacted_and_restarted(alone: Deployment, revision: str) -> Replica:
    [replica] = alone.replicas
    etcdctl(alone.cluster.addresses[0], "compact", revision)
    replica.stop()
    replica.start()
    replica.until_ready()
    return replica


def test_a_list_at_a_compacted_revision_is_410(alone: Deployment) -> None:
    create_crd(alone.replicas[0], "compacted.io")
    made = [create(alone.replicas[0], "compacted.io", f"n{number}") for number in range(5)]
    old, new = (made[at]["metadata"]["resourceVersion"] for at in (0, -1))
    replica = _compacted_and_restarted(alone, new)

    exact = f"{path('compacted.io')}?resourceVersionMatch=Exact&resourceVersion="
    answers = [replica.request("GET", exact + old) for _ in range(3)]

    assert [answer.status for answer in answers] == [410] * 3, answers[0].text
    assert answers[0].json["reason"] == "Expired"
    assert len(done(replica.request("GET", exact + new))["items"]) == 5


def test_history_distinguishes_present_deleted_and_unknown_keys(alone: Deployment) -> None:
    [replica] = alone.replicas
    create_crd(replica, "history.io")
    for name in ("stays", "goes"):
        create(replica, "history.io", name)
    done(replica.request("DELETE", path("history.io", "goes")))

    def history(name: str) -> tuple[int, list[str]]:
        answer = replica.request("GET", "/instar/history" + path("history.io", name))
        return answer.status, [row["operation"] for row in answer.json.get("revisions", ())]

    assert history("stays") == (200, ["create"])
    assert sorted(history("goes")[1]) == ["create", "delete"]
    assert history("never")[0] == 404


def test_history_begins_where_it_is_compacted(alone: Deployment) -> None:
    create_crd(alone.replicas[0], "begins.io")
    create(alone.replicas[0], "begins.io", "early")
    late = create(alone.replicas[0], "begins.io", "late")
    replica = _compacted_and_restarted(alone, late["metadata"]["resourceVersion"])

    answer = done(replica.request("GET", "/instar/history" + path("begins.io", "early")))

    assert [row["operation"] for row in answer["revisions"]] == ["earliest"]
