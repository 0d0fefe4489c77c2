"""Fixtures of the migration tests: a state directory for each, a stand-in for kube-apiserver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.migrator.upstream import Upstream, upstream
from tests.support.server import LiveServer


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def cluster(server: LiveServer, tmp_path: Path) -> Iterator[Upstream]:
    """The server behind a proxy that behaves as kube-apiserver does."""
    with upstream(server, tmp_path) as proxy:
        yield proxy
