"""Each module gets its example resources in a group named after it."""

from __future__ import annotations

import pytest

from tests.rest.support import Collection, bar_crd, foo_crd
from tests.support.server import LiveServer


def group_of(request: pytest.FixtureRequest) -> str:
    module: str = request.module.__name__.rpartition(".")[2]
    return module.removeprefix("test_").replace("_", "-") + ".ex.io"


@pytest.fixture(scope="module")
def foos(server: LiveServer, request: pytest.FixtureRequest) -> Collection:
    group = group_of(request)
    server.create_crd(foo_crd(group))
    return Collection(server, group)


@pytest.fixture(scope="module")
def bars(server: LiveServer, request: pytest.FixtureRequest) -> Collection:
    group = group_of(request)
    server.create_crd(bar_crd(group))
    return Collection(server, group, "bars", "Bar", "")
