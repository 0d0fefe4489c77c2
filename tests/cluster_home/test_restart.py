"""A server behind a main cluster that starts: not ready too early, and never back in time."""

from __future__ import annotations

from pathlib import Path

import orjson

from instar.base.supervision import Supervision
from instar.server.cluster_home.main_cluster import MainCluster
from instar.server.cluster_home.views import ClusterViews
from instar.server.settings import ClusterSettings
from instar.wire.client.kubeconfig import load_access
from tests.support.main_cluster import GROUP, REPORTS, aggregated, report
from tests.support.server import live_server
from tests.support.waiting import eventually


def test_it_is_not_ready_before_it_has_read_the_main_cluster(tmp_path: Path) -> None:
    with aggregated(tmp_path) as both:
        access = load_access(both.main.kubeconfig)
        views = ClusterViews(MainCluster(access), (GROUP,), Supervision())
        waiting = views.waiting_for()
        ready = both.served.request("GET", "/readyz?verbose")

    assert waiting is not None
    for name in ("namespaces", "customresourcedefinitions", "validatingadmissionpolicies"):
        assert name in waiting
    assert "[+]main-cluster ok" in ready.text


def test_revisions_and_watches_go_on_after_a_restart(tmp_path: Path) -> None:
    with aggregated(tmp_path) as both:
        joined = ClusterSettings(kubeconfig=str(both.main.kubeconfig), groups=(GROUP,))
        storage = f"sqlite:{tmp_path}/instar.db"
        kept = tmp_path / "kept"
        with live_server(cluster=joined, cert_dir=kept, storage=storage) as first:
            theirs = both._replace(served=first)
            theirs.serves(REPORTS)
            assert theirs.proxied("POST", REPORTS, report("a")).status == 201
            before = theirs.proxied("GET", REPORTS).json["metadata"]["resourceVersion"]
        with live_server(cluster=joined, cert_dir=kept, storage=storage) as second:
            theirs = both._replace(served=second)
            eventually(lambda: theirs.proxied("POST", REPORTS, report("b")).status == 201)
            after = theirs.proxied("GET", REPORTS).json["metadata"]["resourceVersion"]
            query = f"watch=true&timeoutSeconds=1&resourceVersion={before}"
            events = theirs.proxied("GET", f"{REPORTS}?{query}").text.splitlines()

    assert int(after) > int(before)
    found = [orjson.loads(event) for event in events]
    assert [(each["type"], each["object"]["metadata"]["name"]) for each in found] == [
        ("ADDED", "b")
    ]
