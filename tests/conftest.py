"""Fixtures every room may use: a live server, and the corpus of real CRDs where it is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import LiveServer, live_server

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"


@pytest.fixture(scope="session")
def server() -> Iterator[LiveServer]:
    """Shared by all tests of a run: each test uses groups and names of its own."""
    with live_server() as running:
        yield running


@pytest.fixture
def fresh_server() -> Iterator[LiveServer]:
    """For tests that look at everything or change settings of the whole server."""
    with live_server() as running:
        yield running


@pytest.fixture(scope="session")
def corpus() -> Path:
    if not CORPUS.is_dir():
        pytest.skip(f"the corpus of real CRDs is not at {CORPUS}")
    return CORPUS
