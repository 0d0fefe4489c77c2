"""What a server does in an idle moment for its first CRD leaves no trace, and is enough."""

from __future__ import annotations

import asyncio

from instar.server.lifecycle.embedded import embedded
from instar.server.registry.controllers.crd_warm_up import _sample, warm_up


def test_warming_up_writes_nothing_and_makes_what_a_create_needs() -> None:
    async def run() -> tuple[int, int, bool]:
        async with embedded() as server:
            machinery = server._machinery
            crds = machinery.catalog.builtin("apiextensions.k8s.io", "customresourcedefinitions")
            before = machinery.backend.revision
            await warm_up(machinery.app._context, crds)
            after = machinery.backend.revision
            return before, after, "typed" in crds.serving.versions["v1"].__dict__

    before, after, made = asyncio.run(run())

    assert before == after
    assert made


def test_the_crd_that_warms_is_one_that_a_server_takes() -> None:
    async def run() -> int:
        async with embedded() as server:
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            return (await server.ask("POST", path, _sample())).status

    assert asyncio.run(run()) == 201
