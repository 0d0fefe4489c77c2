"""Measures a running server over HTTP: requests per second and CPU per request. Used by most
benchmarks.
"""

from __future__ import annotations

import json
import statistics
import time

from bench.fixtures import BASE, OTHER, thing
from bench.load import wrk
from bench.process import Measured

Figures = dict[str, float]
_PATCHES = """
names = {{}}
for n in string.gmatch([==[{names}]==], "%S+") do names[#names+1] = n end
k = 0
headers = {{["Content-Type"]="application/merge-patch+json", ["Authorization"]="Bearer {token}",
  ["Host"]="x"}}
request = function()
  k = k + 1
  body = '{{"metadata":{{"annotations":{{"example.com/seq":"' .. k .. '"}}}}}}'
  return wrk.format("PATCH", "{base}/" .. names[(k % #names) + 1], headers, body)
end
"""


def patch_script(names: list[str], token: str) -> str:
    """Return a wrk script that sends merge patches of an annotation to each object in turn."""
    return _PATCHES.format(names=" ".join(names), base=BASE, token=token)


class Load:
    """Measures requests per second and CPU per request; CPU varies less on a shared machine."""

    def __init__(self, server: Measured, seconds: int) -> None:
        self._server = server
        self._seconds = seconds

    def writes(self) -> Figures:
        many = self.measure("create, 32 connections", BASE, 32, "POST", thing())
        return many | self.measure("create, 1 connection", BASE, 1, "POST", thing())

    def reads(self, name: str) -> Figures:
        figures = self.measure("get", f"{BASE}/{name}", 32)
        figures |= self.measure("get, other version", f"{OTHER}/{name}", 32)
        figures |= self.measure("list 500", f"{BASE}?limit=500", 8)
        figures |= self.measure("list 500, other version", f"{OTHER}?limit=500", 8)
        return figures | self.measure("list by label, none", f"{BASE}?labelSelector=app%3Dx", 8)

    def patches(self, names: list[str]) -> Figures:
        """Measure merge patches of an annotation, sent to each object in turn."""
        script = patch_script(names, self._server.token)
        return self.measure("merge patch, 32 connections", "", 32, script=script)

    def measure(
        self,
        name: str,
        path: str,
        connections: int,
        method: str = "GET",
        body: object = None,
        script: str = "",
    ) -> Figures:
        server, before = self._server, self._server.cpu_seconds()
        rate = wrk(
            server.url + path,
            server.token,
            connections=connections,
            seconds=self._seconds,
            method=method,
            body=body,
            script=script,
        )
        spent = (server.cpu_seconds() - before) / max(1, rate.requests) * 1e6
        return {f"{name} /s": rate.per_second, f"{name} µs CPU": spent}


def fill(server: Measured, objects: int) -> None:
    """Create objects until there are ``objects`` of them."""
    while count(server) < objects:
        wrk(
            server.url + BASE,
            server.token,
            connections=32,
            seconds=1,
            method="POST",
            body=thing(),
        )


def count(server: Measured) -> int:
    answer = json.loads(server.call("GET", f"{BASE}?limit=1"))
    return 1 + int(answer["metadata"].get("remainingItemCount", 0))


def list_all(server: Measured, path: str) -> float:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        server.call("GET", path)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3
