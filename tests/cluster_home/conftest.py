"""A main cluster and a server behind it, shared by the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.main_cluster import Aggregated, aggregated


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aggregated]:
    folder: Path = tmp_path_factory.mktemp("clusters")
    with aggregated(folder) as found:
        yield found
