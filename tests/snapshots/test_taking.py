"""A snapshot holds what was asked for, of one moment; what cannot be had is said and counted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from instar.base.errors import Expired, Forbidden, NotFound, ServiceUnavailable
from instar.base.json_values import Object, copy_json
from instar.tools.migrator.progress import NoProgress
from instar.tools.migrator.retries import RetryPolicy
from instar.tools.snapshots.capture.cluster import ClusterSource
from instar.tools.snapshots.capture.redacting import read_field
from instar.tools.snapshots.capture.scope import CaptureScope
from instar.tools.snapshots.capture.taking import take
from instar.tools.snapshots.errors import Interrupted, SnapshotError
from instar.tools.snapshots.manifest import Manifest
from instar.tools.snapshots.snapshot_writer import SnapshotWriter
from instar.tools.snapshots.sources import open_captured_cluster
from tests.snapshots.worlds import CRD, NAMESPACE, widget

pytestmark = pytest.mark.anyio

NAME = "widgets.example.com"
WIDGETS = "/apis/example.com/v1/widgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"


class Cluster:
    """What a client would say, and what it was asked."""

    def __init__(self, **answers: Any) -> None:
        self.objects: dict[str, list[Object]] = {
            CRDS: [CRD],
            WIDGETS: [widget(f"w{number:02}", size=number) for number in range(20)],
            "/api/v1/namespaces": [NAMESPACE],
        }
        self.trouble: dict[tuple[str, str], list[Exception]] = {}
        """By path and token: raised once each."""
        self.asked: list[tuple[str, str]] = []
        self.revision = 100
        self.usage: Object | None = None

    async def list(self, path: str, *, limit: int = 0, continue_: str = "") -> Object:
        self.asked.append((path, continue_))
        waiting = self.trouble.get((path, continue_))
        if waiting:
            raise waiting.pop(0)
        if path not in self.objects:
            raise NotFound("the server could not find the requested resource")
        start = int(continue_ or 0)
        items = self.objects[path][start : start + limit]
        rest = len(self.objects[path]) - start - len(items)
        meta = {"resourceVersion": str(self.revision)}
        if rest:
            meta |= {"continue": str(start + limit), "remainingItemCount": rest}  # type: ignore[dict-item]
        return {"metadata": meta, "items": copy_json(items)}

    async def get(self, path: str) -> Object:
        if self.usage is None:
            raise NotFound("no such page")
        return self.usage


async def taken(
    cluster: Cluster, path: Path, asked: CaptureScope | None = None, **options: Any
) -> Manifest:
    patience = RetryPolicy(attempts=2, first_delay=0.0)
    source = ClusterSource(cluster, "kube:test", page=5, patience=patience)  # type: ignore[arg-type]
    return await take(
        source, SnapshotWriter(path), asked or CaptureScope(), NoProgress(), **options
    )


async def test_crds_objects_and_namespaces_are_there(tmp_path: Path) -> None:
    cluster, path = Cluster(), tmp_path / "s.tar.gz"

    manifest = await taken(cluster, path)

    assert manifest.complete
    with open_captured_cluster(str(path)) as world:
        assert list(world.objects(NAME)) == cluster.objects[WIDGETS]
        assert [each["kind"] for each in world.other_objects()] == ["Namespace"]
    row = manifest.row(f"objects/{NAME}.ndjson")
    assert row is not None
    assert (row.count, row.revision, row.consistent, row.versions) == (20, "100", True, {"v1": 20})


async def test_a_list_that_expires_is_begun_anew(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.trouble[WIDGETS, "10"] = [Expired("too old", list_meta={"continue": "10"})]

    manifest = await taken(cluster, tmp_path / "s.tar.gz")

    assert manifest.complete
    with open_captured_cluster(str(tmp_path / "s.tar.gz")) as world:
        assert list(world.objects(NAME)) == cluster.objects[WIDGETS]


async def test_a_list_that_expires_again_continues_and_is_marked_inconsistent(
    tmp_path: Path,
) -> None:
    cluster = Cluster()
    cluster.objects[WIDGETS] = [widget(f"w{number:03}") for number in range(50)]
    cluster.trouble[WIDGETS, "10"] = [Expired("too old", list_meta={"continue": "10"})]
    cluster.trouble[WIDGETS, "20"] = [Expired("too old", list_meta={"continue": "20"})]

    manifest = await taken(cluster, tmp_path / "s.tar.gz")

    row = manifest.row(f"objects/{NAME}.ndjson")
    assert row is not None
    assert (row.count, row.consistent) == (50, False)
    assert not manifest.complete
    with open_captured_cluster(str(tmp_path / "s.tar.gz")) as world:
        assert list(world.objects(NAME)) == cluster.objects[WIDGETS]
        assert [problem for problem in world.problems if "not of one moment" in problem]


async def test_forbidden_resources_are_reported_and_the_rest_is_captured(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.trouble[WIDGETS, "10"] = [Forbidden("you may not")] * 9

    manifest = await taken(cluster, tmp_path / "s.tar.gz")

    assert manifest.problems == (
        f"{NAME}: you may not",
        f"{NAME}: 10 objects could not be read",
    )
    with open_captured_cluster(str(tmp_path / "s.tar.gz")) as world:
        assert len(list(world.objects(NAME))) == 10
        assert world.counts().unjudged == 10
        assert len(list(world.other_objects())) == 1


async def test_an_interrupted_snapshot_resumes_after_its_last_page(tmp_path: Path) -> None:
    cluster, path = Cluster(), tmp_path / "s.tar.gz"
    cluster.trouble[WIDGETS, "10"] = [ServiceUnavailable("gone")] * 2
    with pytest.raises(Interrupted):
        await taken(cluster, path)
    assert not path.exists()
    cluster.asked.clear()

    manifest = await taken(cluster, path, resume=True)

    assert [token for asked, token in cluster.asked if asked == WIDGETS] == ["10", "15"]
    assert manifest.complete
    with open_captured_cluster(str(path)) as world:
        assert list(world.objects(NAME)) == cluster.objects[WIDGETS]
        assert world.problems == []
    assert os.listdir(tmp_path) == ["s.tar.gz"]


async def test_pseudonyms_are_the_same_after_an_interruption(tmp_path: Path) -> None:
    cluster, path = Cluster(), tmp_path / "s.tar.gz"
    cluster.objects[WIDGETS] = [widget(f"w{number:02}", ref="the-same-one") for number in range(20)]
    cluster.trouble[WIDGETS, "10"] = [ServiceUnavailable("gone")] * 2
    asked = CaptureScope(redacted=(read_field("spec.ref"),))
    with pytest.raises(Interrupted):
        await taken(cluster, path, asked)

    await taken(cluster, path, asked, resume=True)

    with open_captured_cluster(str(path)) as world:
        found = {obj["spec"]["ref"] for obj in world.objects(NAME)}
    assert len(found) == 1
    assert found != {"the-same-one"}


async def test_another_snapshot_is_not_gone_on_with(tmp_path: Path) -> None:
    cluster, path = Cluster(), tmp_path / "s.tar.gz"
    cluster.trouble[WIDGETS, "10"] = [ServiceUnavailable("gone")] * 2
    with pytest.raises(Interrupted):
        await taken(cluster, path)

    with pytest.raises(SnapshotError, match="begun as another snapshot"):
        await taken(cluster, path, CaptureScope(frozenset({NAME})), resume=True)


async def test_a_cluster_that_is_not_there_leaves_nothing_behind(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.trouble[CRDS, ""] = [ServiceUnavailable("connection refused")] * 2

    with pytest.raises(SnapshotError, match="connection refused"):
        await taken(cluster, tmp_path / "s.tar.gz")

    assert os.listdir(tmp_path) == []


async def test_only_configurations_that_mean_the_crds_are_taken(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.objects[WEBHOOKS] = [
        _configuration("ours", "example.com", "widgets"),
        _configuration("all", "*", "*/*"),
        _configuration("pods", "", "pods"),
        _configuration("other", "example.com", "gadgets"),
    ]
    cluster.objects[POLICIES] = [_policy("ours", "widgets"), _policy("other", "gadgets")]
    cluster.objects[BINDINGS] = [_binding("ours"), _binding("other")]

    await taken(cluster, tmp_path / "s.tar.gz")

    with open_captured_cluster(str(tmp_path / "s.tar.gz")) as world:
        found = [(each["kind"], each["metadata"]["name"]) for each in world.other_objects()]
    assert found == [
        ("ValidatingWebhookConfiguration", "ours"),
        ("ValidatingWebhookConfiguration", "all"),
        ("ValidatingAdmissionPolicy", "ours"),
        ("ValidatingAdmissionPolicyBinding", "ours-binding"),
        ("Namespace", "ns"),
    ]


async def test_usage_of_captured_crds_is_in_the_snapshot_and_no_other(tmp_path: Path) -> None:
    cluster = Cluster()
    line = {"version": "v1", "verb": "get", "user": "u", "userAgent": "a", "count": 3}
    times = {"first": "2026-01-01T00:00:00Z", "last": "2026-01-02T00:00:00Z"}
    cluster.usage = {
        "since": "2025-12-01T00:00:00Z",
        "uses": [
            {"group": "example.com", "resource": "widgets", **line, **times},
            {"group": "", "resource": "secrets", **line, **times},
        ],
    }

    await taken(cluster, tmp_path / "s.tar.gz")

    with open_captured_cluster(str(tmp_path / "s.tar.gz")) as world:
        (use,) = world.usage()
        document = world.usage_document()
    assert (use.resource, use.number, use.agent) == ("widgets", 3, "a")
    assert document == {**cluster.usage, "uses": cluster.usage["uses"][:1]}


async def test_audit_events_become_usage_where_the_server_has_no_counters(tmp_path: Path) -> None:
    def event(resource: str, user: str) -> Object:
        return {
            "stage": "ResponseComplete",
            "verb": "list",
            "user": {"username": user},
            "userAgent": "op/1",
            "requestReceivedTimestamp": "2026-01-01T00:00:00Z",
            "objectRef": {"apiGroup": "example.com", "resource": resource, "apiVersion": "v1beta1"},
        }

    events = [event("widgets", "a"), event("gadgets", "a"), event("widgets", "a")]

    await taken(Cluster(), tmp_path / "s.tar.gz", audit=events)

    with open_captured_cluster(str(tmp_path / "s.tar.gz")) as world:
        (use,) = world.usage()
        kept = list(world.audit())
    assert (use.version, use.verb, use.user, use.number) == ("v1beta1", "list", "a", 2)
    assert len(kept) == 2


async def test_one_crd_can_be_selected(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="no CustomResourceDefinition"):
        await taken(Cluster(), tmp_path / "s.tar.gz", CaptureScope(frozenset({"x.y"})))


def _rule(group: str, resource: str) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["*"],
        "resources": [resource],
    }


def _configuration(name: str, group: str, resource: str) -> Object:
    webhook = {"name": f"{name}.x.io", "rules": [_rule(group, resource)]}
    return {"metadata": {"name": name}, "webhooks": [webhook]}


def _policy(name: str, resource: str) -> Object:
    rules = {"resourceRules": [_rule("example.com", resource)]}
    return {"metadata": {"name": name}, "spec": {"matchConstraints": rules}}


def _binding(policy: str) -> Object:
    return {"metadata": {"name": f"{policy}-binding"}, "spec": {"policyName": policy}}
