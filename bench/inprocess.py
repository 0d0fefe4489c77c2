"""Runs one verb through the whole application without sockets; prints microseconds per request or a
profile.

``python -m bench.inprocess create [--profile cumtime] [--storage sqlite:/tmp/x.db]``
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import time
from typing import Any

from bench.fixtures import BASE, CRDS, OTHER, crd, thing
from instar.server.http.messages import Request
from instar.server.lifecycle.lifetime import RunningServer, running
from instar.server.settings import Settings

VERBS = ("create", "get", "other", "patch", "list")


class Caller:
    def __init__(self, server: RunningServer) -> None:
        self._app = server.machinery.app
        self._headers = {
            b"authorization": b"Bearer " + server.token.encode(),
            b"content-type": b"application/json",
            b"accept": b"application/json",
        }

    async def call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        query: dict[str, list[str]] | None = None,
        content_type: bytes = b"application/json",
    ) -> bytes:
        headers = {**self._headers, b"content-type": content_type}
        request = Request(
            method=method, path=path, query=dict(query or {}), headers=headers, body=body
        )
        response = await self._app(request, None)
        data = b"".join(response.chunks)
        assert response.status in (200, 201), data
        return data


async def _once(caller: Caller, verb: str, step: int, names: list[str], new: bytes) -> None:
    name = names[step % len(names)]
    if verb == "create":
        await caller.call("POST", BASE, new)
    elif verb == "get":
        await caller.call("GET", f"{BASE}/{name}")
    elif verb == "other":
        await caller.call("GET", f"{OTHER}/{name}")
    elif verb == "list":
        await caller.call("GET", BASE, query={"limit": ["500"]})
    else:
        patch = b'{"metadata":{"annotations":{"example.com/seq":"%d"}}}' % step
        await caller.call(
            "PATCH", f"{BASE}/{name}", patch, content_type=b"application/merge-patch+json"
        )


async def measure(verb: str, storage: str, count: int, profile: str) -> float:
    """Return the microseconds of CPU per request, best of five rounds."""
    async with running(Settings(port=0, storage=storage)) as server:
        caller = Caller(server)
        await caller.call("POST", CRDS, json.dumps(crd()).encode())
        new = json.dumps(thing()).encode()
        names = []
        for _ in range(500):
            created: dict[str, Any] = json.loads(await caller.call("POST", BASE, new))
            names.append(created["metadata"]["name"])

        async def round_() -> float:
            began = time.process_time()
            for step in range(count):
                await _once(caller, verb, step, names, new)
            return (time.process_time() - began) / count * 1e6

        best = min([await round_() for _ in range(5)])
        if profile:
            profiler = cProfile.Profile()
            profiler.enable()
            await round_()
            profiler.disable()
            pstats.Stats(profiler).sort_stats(profile).print_stats(70)
        return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verbs", nargs="*", choices=VERBS, default=list(VERBS))
    parser.add_argument("--storage", default="memory:")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--profile", default="", metavar="SORT")
    options = parser.parse_args()
    for verb in options.verbs:
        micros = asyncio.run(measure(verb, options.storage, options.count, options.profile))
        print(f"{verb:8} {micros:8.1f} µs")


if __name__ == "__main__":
    main()
