"""A cluster for each test; its policies are gone afterwards, for the server is everybody's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.admission.policies.support import Cluster, widget_crd
from tests.support.server import LiveServer


@pytest.fixture(scope="module")
def widgets(server: LiveServer, request: pytest.FixtureRequest) -> str:
    module: str = request.module.__name__.rpartition(".")[2]
    group = module.removeprefix("test_").replace("_", "-") + ".ref.io"
    server.create_crd(widget_crd(group))
    return group


@pytest.fixture
def cluster(server: LiveServer, widgets: str) -> Iterator[Cluster]:
    found = Cluster(server, widgets)
    yield found
    found.clear()
