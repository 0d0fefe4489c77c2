"""The recordings, sent again in their order to one server."""

from __future__ import annotations

import pytest

from tests.builtins.replay import RECORDINGS, Replayed, replay
from tests.support.shared import demand_shared


@pytest.fixture(scope="session")
def replayed() -> Replayed:
    demand_shared(RECORDINGS)
    return replay()
