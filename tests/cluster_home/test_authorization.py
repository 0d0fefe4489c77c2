"""Whether users may: the main cluster decides, within a bounded time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from instar.kube.access.attributes import Attributes, User
from instar.server.access.webhook_authorizer import review_of
from tests.support.main_cluster import GROUP, REPORTS, Aggregated, aggregated
from tests.support.waiting import eventually

_ASKED = "apiserver_delegated_authz_request_total"


def _allow(both: Aggregated, user: str) -> None:
    name = f"reports-of-{user}"
    rules = [{"apiGroups": [GROUP], "resources": ["reports"], "verbs": ["get", "list"]}]
    path = "/apis/rbac.authorization.k8s.io/v1"
    both.create(f"{path}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    both.create(
        f"{path}/clusterrolebindings",
        {
            "metadata": {"name": name},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": name,
            },
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        },
    )


def _questions(both: Aggregated) -> float:
    lines = both.served.request("GET", "/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(_ASKED + "{"))


def test_a_role_of_the_main_cluster_allows(both: Aggregated) -> None:
    _allow(both, "ann")

    assert both.proxied("GET", REPORTS, user="ann", groups=()).status == 200
    refused = both.proxied("DELETE", f"{REPORTS}/a", user="ann", groups=())
    assert refused.status == 403
    assert refused.json["message"] == (
        f'reports.{GROUP} "a" is forbidden: User "ann" cannot delete resource "reports" in API '
        f'group "{GROUP}" in the namespace "default"'
    )


def test_equal_questions_are_asked_once(both: Aggregated) -> None:
    _allow(both, "bob")
    before = _questions(both)

    for _ in range(30):
        assert both.proxied("GET", REPORTS, user="bob", groups=()).status == 200

    assert _questions(both) - before == 1


def test_masters_and_health_are_allowed_without_a_question(both: Aggregated) -> None:
    before = _questions(both)

    assert both.proxied("GET", REPORTS).status == 200
    assert both.served.request("GET", "/readyz", token=None).status == 200

    assert _questions(both) == before


def test_the_question_states_the_selectors_of_a_list() -> None:
    asked = Attributes(
        User("joe"),
        "list",
        GROUP,
        "v1",
        "reports",
        namespace="default",
        field_selector="metadata.name!=a",
        label_selector="tier in (x,y),!old",
    )

    found = review_of(asked)["spec"]["resourceAttributes"]

    assert found["fieldSelector"] == {
        "requirements": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]
    }
    assert found["labelSelector"] == {
        "requirements": [
            {"key": "tier", "operator": "In", "values": ["x", "y"]},
            {"key": "old", "operator": "DoesNotExist"},
        ]
    }


def test_selectors_that_cannot_be_parsed_are_left_out() -> None:
    asked = Attributes(User("joe"), "list", resource="reports", label_selector="a in (")

    assert "labelSelector" not in review_of(asked)["spec"]["resourceAttributes"]


@contextmanager
def _stopped(both: Aggregated) -> Iterator[None]:
    """The main cluster accepts connections and does not answer."""
    go_on, stands = threading.Event(), threading.Event()

    def stand() -> None:
        stands.set()
        go_on.wait()

    both.main.loop.call_soon_threadsafe(stand)
    stands.wait()
    try:
        yield
    finally:
        go_on.set()


def test_a_main_cluster_that_hangs_ends_a_request_in_bounded_time(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("instar.server.cluster_home.home.ANSWER_SECONDS", 0.3)
    with aggregated(tmp_path) as both:
        eventually(lambda: both.proxied("GET", REPORTS).status == 200)
        with _stopped(both):
            refused = both.proxied("GET", REPORTS, user="joe", groups=())
            of_master = both.proxied("GET", REPORTS)
            discovered = both.proxied("GET", f"/apis/{GROUP}/v1")
        eventually(lambda: both.proxied("GET", REPORTS, user="joe", groups=()).status == 403)

    assert refused.status == 500
    assert "no answer within 0.3 s" in refused.text
    assert of_master.status == 200
    assert discovered.status == 200
