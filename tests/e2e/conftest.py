"""A test that asks for ``kubectl`` runs once per kubectl there is, in a namespace of its own."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.make import widget_crd
from tests.support.kubectl import MISSING, Kubectl, client_version, kubectls
from tests.support.server import LiveServer, live_server

WIDGETS = "e2e.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def shared() -> Iterator[LiveServer]:
    """One server for the tests of this folder; widgets.e2e.example.com is served."""
    with live_server() as running:
        running.create_crd(widget_crd(WIDGETS))
        yield running


@pytest.fixture(scope="package", params=kubectls() or [""])
def client(
    request: pytest.FixtureRequest, shared: LiveServer, tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    if not request.param:
        pytest.skip(MISSING)
    version = client_version(request.param)
    home = tmp_path_factory.mktemp(f"kubectl-{version[0]}-{version[1]}")
    return Kubectl(request.param, version, shared, home)


@pytest.fixture
def kubectl(client: Kubectl, request: pytest.FixtureRequest) -> Kubectl:
    """In an empty namespace, named after the test and the kubectl."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.originalname.removeprefix("test_"))
    name = f"{words[:40].strip('-')}-{next(_numbers)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    answer = client.server.request("POST", "/api/v1/namespaces", body)
    assert answer.status == 201, answer.text
    return replace(client, namespace=name)


@pytest.fixture
def group(kubectl: Kubectl) -> Iterator[str]:
    """A group no other test uses, gone afterwards: kubectl's discovery slows with every group."""
    name = f"{kubectl.namespace}.example.com"
    yield name
    for plural in ("widgets", "crontabs"):
        kubectl.server.request("DELETE", f"{CRDS}/{plural}.{name}")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return tmp_path
