"""A captured cluster is served as it was: read-only, or as a cluster of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.base.json_values import copy_json
from instar.tools.testing.api_server import Server, server
from tests.snapshots.worlds import CRD, widget, write_snapshot

WIDGETS = "/apis/example.com/v1/namespaces/ns/widgets"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    leaving = widget("leaving", size=2)
    leaving["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["example.com/wait"],
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "gone", "uid": "not-captured"}
        ],
    }
    path = tmp_path_factory.mktemp("taken") / "s.tar.gz"
    return write_snapshot(path, [widget("w", size=1), leaving])


@pytest.fixture(scope="module")
def frozen(snapshot: Path) -> Iterator[Server]:
    with server(snapshot, read_only=True) as running:
        yield running


def test_it_is_read(frozen: Server) -> None:
    found = frozen.request("GET", f"{WIDGETS}/w").json

    assert found["spec"] == {"size": 1}
    assert found["metadata"]["uid"] == "uid-w"
    assert len(frozen.request("GET", WIDGETS).json["items"]) == 2
    assert frozen.request("GET", "/readyz").text == "ok"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", WIDGETS, widget("new")),
        ("PUT", f"{WIDGETS}/w", widget("w", size=2)),
        ("PATCH", f"{WIDGETS}/w", {"spec": {"size": 2}}),
        ("DELETE", f"{WIDGETS}/w", None),
        ("DELETE", WIDGETS, None),
        ("POST", "/api/v1/namespaces", {"metadata": {"name": "x"}}),
        ("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", None),
        ("PUT", f"{WIDGETS}/w/status", widget("w")),
    ],
)
def test_a_read_only_server_refuses_every_write(
    frozen: Server, method: str, path: str, body: Any
) -> None:
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = frozen.request(method, path, body, content_type=kind)

    assert answer.status in (403, 404), answer.text  # widgets have no status subresource
    assert answer.json["kind"] == "Status"
    assert answer.json["reason"] in ("Forbidden", "NotFound")


def test_a_read_only_server_answers_dry_runs_and_questions(frozen: Server) -> None:
    obj = widget("new", size=5)
    del obj["metadata"]["uid"]
    review = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "widgets"}},
    }

    tried = frozen.request("POST", f"{WIDGETS}?dryRun=All", obj)
    asked = frozen.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)

    assert (tried.status, asked.status) == (201, 201)
    assert frozen.request("GET", f"{WIDGETS}/new").status == 404


def test_nothing_in_a_read_only_server_changes_by_itself(snapshot: Path) -> None:
    with server(snapshot, read_only=True) as running:
        before = running.request("GET", WIDGETS).json["metadata"]["resourceVersion"]
        objects = running.request("GET", f"{WIDGETS}/leaving").json

        assert objects["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
        assert running.request("GET", WIDGETS).json["metadata"]["resourceVersion"] == before
        assert len(running.request("GET", "/api/v1/namespaces").json["items"]) == 1


def test_a_writable_copy_takes_writes_and_keeps_what_has_no_owner(snapshot: Path) -> None:
    with server(snapshot) as running:
        new = widget("new", size=5)
        del new["metadata"]["uid"]

        assert running.request("POST", WIDGETS, new).status == 201
        changed = running.request(
            "PATCH",
            f"{WIDGETS}/w",
            {"spec": {"size": 9}},
            content_type="application/merge-patch+json",
        ).json
        assert (changed["spec"]["size"], changed["metadata"]["generation"]) == (9, 2)
        assert running.request("DELETE", f"{WIDGETS}/w").status == 200
        assert running.request("GET", f"{WIDGETS}/leaving").status == 200


def test_a_crd_that_is_refused_leaves_the_rest_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = copy_json(CRD)
    bad["metadata"]["name"] = "other.example.com"
    path = write_snapshot(tmp_path / "s.tar.gz", [widget("w")], crds=[bad, CRD])

    with server(path) as running:
        assert running.request("GET", f"{WIDGETS}/w").status == 200

    assert "other.example.com is refused" in caplog.text
