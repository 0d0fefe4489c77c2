"""A server, and a backend behind it that does what the path says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.aggregation.backend import Backend
from tests.aggregation.modern import Modern, entry
from tests.aggregation.scripts import GROUP, Scripts
from tests.aggregation.support import register
from tests.support.server import LiveServer, live_server


@pytest.fixture(scope="module")
def main() -> Iterator[LiveServer]:
    with live_server(request_timeout=60.0) as server:
        yield server


@pytest.fixture(scope="module")
def scripts() -> Scripts:
    return Scripts()


@pytest.fixture(scope="module")
def backend(main: LiveServer, scripts: Scripts) -> Iterator[Backend]:
    with Backend(scripts) as backend:
        proxy = main.running.kubeconfig.parent / "front-proxy-ca.crt"
        backend.trust(proxy.read_bytes())
        register(main, backend, GROUP)
        yield backend
        scripts.release.set()


@pytest.fixture(scope="module")
def modern(main: LiveServer) -> Iterator[Modern]:
    script = Modern("modern.example.com")
    with Backend(script) as backend:
        register(main, backend, script.group)
        script.backend = backend  # type: ignore[attr-defined]
        entry(main, f"{script.group}/v1", "Current")
        yield script
