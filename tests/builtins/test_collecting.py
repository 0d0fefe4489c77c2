"""An owner of very many dependents goes: so do they, and everybody else is served meanwhile."""

from __future__ import annotations

import asyncio
import time

from instar.server.registry.stored.make_entry import put_server_object
from tests.support.server import LiveServer, live_server

MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
DEPENDENTS = 10_000
AT_ONCE = 200
PATIENCE = 120.0
ANSWERS = 10
"""At the very least, while the work goes on: were it done in one go, there would be one."""


def make_dependents(server: LiveServer, uid: str) -> None:
    """In the server's own loop: what is tested is how they go."""
    machinery = server.running.machinery
    secrets = machinery.catalog.builtin("", "secrets")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}

    async def one(number: int) -> None:
        name = f"d-{number}"
        metadata = {"name": name, "namespace": "default", "uid": name, "ownerReferences": [owner]}
        obj = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}
        await put_server_object(machinery.backend, secrets, f"default/{name}", obj, 0)

    async def some(first: int) -> None:
        await asyncio.gather(*(one(number) for number in range(first, first + AT_ONCE)))

    for first in range(0, DEPENDENTS, AT_ONCE):
        server.run(some(first))


def test_ten_thousand_dependents_are_collected_while_requests_are_served() -> None:
    with live_server(storage="memory:") as server:
        owner = server.request("POST", MAPS, {"metadata": {"name": "owner"}}).json
        make_dependents(server, owner["metadata"]["uid"])
        secrets = server.running.machinery.catalog.builtin("", "secrets").objects.entries
        assert len(secrets) == DEPENDENTS

        began = time.monotonic()
        server.request("DELETE", f"{MAPS}/owner")
        answers = 0
        while secrets and time.monotonic() < began + PATIENCE:
            assert server.request("GET", f"{SECRETS}?limit=1").status == 200
            answers += 1

        assert len(secrets) == 0
        assert answers >= ANSWERS
