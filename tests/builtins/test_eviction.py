"""Evictions: in which versions they are sent, and what their preconditions are held against."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.server import Answer, LiveServer

PODS = "/api/v1/namespaces/default/pods"


def pod(server: LiveServer, name: str) -> Any:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    made = server.request("POST", PODS, {"metadata": {"name": name}, "spec": spec})
    assert made.status == 201
    return made.json["metadata"]


def evict(server: LiveServer, name: str, version: str = "policy/v1", **options: Any) -> Answer:
    body = {
        "apiVersion": version,
        "kind": "Eviction",
        "metadata": {"name": name},
        "deleteOptions": options,
    }
    return server.request("POST", f"{PODS}/{name}/eviction", body)


@pytest.mark.parametrize(
    ("version", "status"), [("policy/v1", 201), ("policy/v1beta1", 201), ("policy/v2", 400)]
)
def test_an_eviction_may_be_written_in_either_version(
    server: LiveServer, version: str, status: int
) -> None:
    name = f"in-{version.replace('/', '-')}"
    pod(server, name)

    assert evict(server, name, version, dryRun=["All"]).status == status


def test_the_revision_of_an_eviction_is_that_of_the_pod_before_it_is_marked(
    server: LiveServer,
) -> None:
    metadata = pod(server, "marked")

    stale = evict(server, "marked", preconditions={"resourceVersion": "1"})
    other = evict(server, "marked", preconditions={"uid": "other"})
    untouched = server.request("GET", f"{PODS}/marked").json["metadata"]
    revision = metadata["resourceVersion"]
    both = {"resourceVersion": revision, "uid": metadata["uid"]}
    done = evict(server, "marked", preconditions=both)

    assert (stale.status, other.status) == (409, 409)
    assert untouched["resourceVersion"] == revision
    assert done.status == 201
