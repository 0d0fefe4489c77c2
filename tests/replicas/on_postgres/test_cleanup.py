"""Work that every replica sees to harms nothing when done twice, on one database, too; and history
is there through each replica until it is compacted."""

from __future__ import annotations

from tests.replicas.postgres_faults import PostgresDeployment
from tests.replicas.processes import Replica
from tests.replicas.resources import path
from tests.replicas.test_cleanup import (  # noqa: F401
    test_a_crd_is_settled_by_both_and_every_state_is_written_once,
    test_objects_of_a_crd_made_anew_survive_the_end_of_the_old_one,
    test_objects_of_a_namespace_made_anew_survive_the_end_of_the_old_one,
)
from tests.replicas.test_consistency import create, create_crd, done


def test_the_initial_namespaces_are_made_once_by_replicas_that_start_together(
    pair: PostgresDeployment,
) -> None:
    rows = "select count(*) from instar.log where key = 'core/namespaces/default'"
    assert pair.node.sql(rows) == "1"
    assert pair.node.sql("select count(*) from instar.version") == "1"


def test_history_is_told_by_each_replica_until_it_is_compacted(
    pair: PostgresDeployment, one: Replica, other: Replica
) -> None:
    create_crd(one, "history.io")
    for name in ("stays", "goes"):
        create(one, "history.io", name)
    done(one.request("DELETE", path("history.io", "goes")))

    def history(replica: Replica, name: str) -> list[str]:
        answer = done(replica.request("GET", "/instar/history" + path("history.io", name)))
        return [row["operation"] for row in answer["revisions"]]

    for replica in pair.replicas:
        assert history(replica, "stays") == ["create"]
        assert sorted(history(replica, "goes")) == ["create", "delete"]
    pair.node.sql("select instar.compact_1((select revision from instar.head))")
    assert history(other, "stays") == ["earliest"]
