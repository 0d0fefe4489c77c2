"""A real server for our own tests: what ``instar.testing`` gives everybody, and a look inside."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from instar.server.settings import Settings
from instar.tools.testing.api_server import Answer, Server, in_thread

__all__ = ["Answer", "LiveServer", "live_server"]


class LiveServer(Server):
    """Talk to it with ``request``; point clients at ``kubeconfig``."""

    def stored(self, key: str) -> dict[str, Any]:
        """The bytes in the store under ``group/plural/[namespace/]name``, parsed."""
        future = asyncio.run_coroutine_threadsafe(
            self.running.machinery.backend.store.get(key), self.loop
        )
        record = future.result(10)
        assert record is not None, f"nothing is stored at {key}"
        return cast(dict[str, Any], json.loads(record.value))

    def create_crd(self, crd: dict[str, Any]) -> dict[str, Any]:
        version = crd["apiVersion"].partition("/")[2]
        path = f"/apis/apiextensions.k8s.io/{version}/customresourcedefinitions"
        answer = self.request("POST", path, crd)
        assert answer.status == 201, answer.text
        return cast(dict[str, Any], answer.json)


@contextmanager
def live_server(**settings: Any) -> Iterator[LiveServer]:
    """A server until the end of the block; any setting of ``Settings`` by keyword. It is bare, and
    calls webhooks only when it must, unless told otherwise: most tests count."""
    chosen = Settings(**{"port": 0, "bootstrap_objects": False, "convert_ahead": False, **settings})
    with in_thread(chosen) as (running, loop):
        yield LiveServer(running, loop)
