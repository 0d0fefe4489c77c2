"""A kopf operator whose custom resources own built-in objects: those come, follow and go."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.crds import crd, version
from tests.support.server import LiveServer, live_server

OPERATOR = Path(__file__).with_name("kopf_children.py")
SITES = "/apis/sites.example.com/v1/namespaces/default/sites"
CHILDREN = (
    "/apis/apps/v1/namespaces/default/deployments/home",
    "/api/v1/namespaces/default/services/home",
    "/api/v1/namespaces/default/configmaps/home",
)
MERGE = "application/merge-patch+json"


@contextmanager
def operator(server: LiveServer) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace=default", str(OPERATOR)],
        env={**os.environ, "KUBECONFIG": str(server.kubeconfig)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def soon(holds: Callable[[], bool]) -> bool:
    """An operator tells nobody when it is done."""
    until = time.monotonic() + 30.0
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    return holds()


def statuses(server: LiveServer) -> set[int]:
    return {server.request("GET", path).status for path in CHILDREN}


def test_children_come_follow_and_go_with_their_owner() -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    site = {
        "apiVersion": "sites.example.com/v1",
        "kind": "Site",
        "metadata": {"name": "home"},
        "spec": {"text": "hello"},
    }
    with live_server(bootstrap_objects=True) as server:
        server.create_crd(
            crd(version(schema=schema), group="sites.example.com", plural="sites", kind="Site")
        )
        with operator(server):
            server.request("POST", SITES, site)

            assert soon(lambda: statuses(server) == {200})
            deployment = server.request("GET", CHILDREN[0]).json
            [owner] = deployment["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"], owner["controller"]) == ("Site", "home", True)

            change = {"spec": {"text": "bye", "replicas": 3}}
            server.request("PATCH", f"{SITES}/home", change, content_type=MERGE)
            assert soon(lambda: server.request("GET", CHILDREN[0]).json["spec"]["replicas"] == 3)
            page = server.request("GET", CHILDREN[2]).json
            assert soon(
                lambda: server.request("GET", CHILDREN[2]).json["data"] == {"index.html": "bye"}
            ), page

            server.request("DELETE", f"{SITES}/home")
            assert soon(lambda: statuses(server) == {404})
            assert server.request("GET", f"{SITES}/home").status == 404
