"""The recordings, sent again in their order to one server."""

from __future__ import annotations

import pytest

from tests.builtins.replay import RECORDINGS, Replayed, replay


@pytest.fixture(scope="session")
def replayed() -> Replayed:
    if not RECORDINGS.exists():
        pytest.skip(f"no recordings at {RECORDINGS}")
    return replay()
