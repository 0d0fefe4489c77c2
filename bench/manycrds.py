"""Measures how memory, start time and the cost of discovery and OpenAPI grow with the number of
CRDs.

``python -m bench.manycrds [--crds 10 100 1000 10000] [--corpus FOLDER]``: adds CRDs step by step to
a server with default settings (SQLite, TLS, token), restarts it at each step, and requests every
document that covers all CRDs. With ``--corpus``, a folder of real CRDs (``*/*/*.yaml``), these are
copied under other group names; otherwise one CRD of 60 kB is. Only the first few are created
through the API; the copies are written to the store as a server would store them. Milliseconds are
the server's CPU time, which depends least on other load of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import http.client
import itertools
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from bench.fixtures import CRDS, crd
from bench.process import TRUSTING, Measured, scratch, serving
from instar.kube.api.encoding.manifests import documents
from instar.wire.storage.open import open_store
from instar.wire.storage.store import Write

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_MERGE = "application/merge-patch+json"
_STORED = "apiextensions.k8s.io/customresourcedefinitions/"
_LARGEST = "/openapi/v2"
_ROUNDS = 5
Figures = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.manycrds", description=__doc__)
    parser.add_argument("--crds", type=int, nargs="*", default=[10, 100, 1_000, 10_000])
    parser.add_argument("--corpus", type=Path, help="a folder of real CRDs, */*/*.yaml")
    parser.add_argument("--flags", nargs="*", default=[], help="further flags of the server")
    options = parser.parse_args()
    steps: dict[int, Figures] = {}
    given = originals(options.corpus)
    for step in sorted(options.crds):
        with scratch() as folder:
            with _server(folder, options.flags) as server:
                server.pause(2.0)
            with _server(folder, options.flags) as server:
                empty = server.resident_mb()
                client, made = Client(server), renamed(given)
                for one in itertools.islice(made, min(step, len(given))):
                    client.create(one)
            size = asyncio.run(_multiply(f"sqlite:{folder}/bench.db", step))
            with _server(folder, options.flags) as server:
                figures = {"restart s": server.started_in, "JSON MB": size / 1e6}
                figures |= _measure_idle(server, empty, size)
                figures |= _measure_documents(Client(server)) | _measure_writes(
                    Client(server), made
                )
            steps[step] = figures
            print(step, {name: round(value, 2) for name, value in figures.items()}, flush=True)
    _table(steps)


async def _multiply(storage: str, wanted: int) -> int:
    """Copy the stored CRDs to other groups until there are ``wanted``; return the bytes of all."""
    store = await open_store(storage)
    originals = [orjson.loads(one.value) for one in (await store.range(_STORED)).records]
    have, size = len(originals), sum(len(orjson.dumps(one)) for one in originals)
    for number in range(have, wanted):
        made = copy.copy(originals[number % have])
        group = f"copy{number // have}.{made['spec']['group']}"
        made["spec"] = {**made["spec"], "group": group}
        name, uid = f"{made['spec']['names']['plural']}.{group}", str(uuid.uuid4())
        made["metadata"] = {**made["metadata"], "name": name, "uid": uid}
        value = orjson.dumps(made, option=orjson.OPT_SORT_KEYS) + b"\n"
        size += len(value)
        await store.commit(Write(_STORED + name, value, 0))
    await store.compact(await store.barrier())
    await store.close()
    return size


def renamed(originals: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the CRDs under other group names, endlessly."""
    number = 0
    while True:
        for original in originals:
            made = copy.deepcopy(original)
            made["spec"]["group"] = group = f"g{number}.{original['spec']['group']}"
            made["metadata"] = {"name": f"{original['spec']['names']['plural']}.{group}"}
            yield made
        number += 1


def originals(corpus: Path | None) -> list[dict[str, Any]]:
    if corpus is None:
        large = crd()
        for version in large["spec"]["versions"]:
            _grow(version["schema"]["openAPIV3Schema"])
        return [large]
    newest: dict[str, dict[str, Any]] = {}
    for path in sorted(corpus.glob("*/*/*.yaml"), key=_release):
        for document in documents(path.read_text(), str(path)):
            if document.value.get("apiVersion") == "apiextensions.k8s.io/v1":
                newest[document.value["metadata"]["name"]] = document.value
    # A protected group (k8s.io) needs an approval annotation; conversion webhooks do not run here.
    for found in newest.values():
        found["spec"]["group"] = found["spec"]["group"].replace("k8s.io", "example.com")
        found["spec"].pop("conversion", None)
    return list(newest.values())


def _release(path: Path) -> tuple[list[int], str]:
    return [int(part) for part in path.parent.name.lstrip("v").split(".")], path.name


def _grow(schema: dict[str, Any]) -> None:
    words = "What this field is for, in as many words as such schemas use. "
    for number in range(150):
        field = {"type": "string", "description": words * 2, "maxLength": 64 + number}
        schema["properties"]["spec"]["properties"][f"field{number}"] = field


class Client:
    """One keep-alive connection that also measures the server's CPU time."""

    def __init__(self, server: Measured) -> None:
        self.server = server
        address = urlsplit(server.url)
        assert address.hostname is not None
        self._connection = http.client.HTTPSConnection(
            address.hostname, address.port, context=TRUSTING, timeout=600
        )

    def ask(
        self, method: str, path: str, body: Any = None, media: str = "", accept: str = ""
    ) -> bytes:
        headers = {
            "Authorization": f"Bearer {self.server.token}",
            "Content-Type": media or "application/json",
            "Accept": accept or "application/json",
            "Accept-Encoding": "gzip" if path == _LARGEST else "identity",
        }
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, headers)
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status == 504:  # the document is still being built: request it again
            return self.ask(method, path, body, media, accept)
        assert answer.status < 300, data[:500]
        return data

    def create(self, made: dict[str, Any]) -> bytes:
        return self.ask("POST", CRDS, made)

    def cpu_ms(self, act: Callable[[], Any]) -> float:
        before = self.server.cpu_seconds()
        act()
        return (self.server.cpu_seconds() - before) * 1e3


def _measure_writes(client: Client, made: Iterator[dict[str, Any]]) -> Figures:
    """Measure writes of several CRDs together, because one is too short for the process clock."""
    some = [next(made) for _ in range(_ROUNDS)]
    paths = [f"{CRDS}/{one['metadata']['name']}" for one in some]

    def patch(body: Callable[[dict[str, Any]], Any]) -> None:
        for path, one in zip(paths, some, strict=True):
            client.ask("PATCH", path, body(one), media=_MERGE)

    def wider(one: dict[str, Any]) -> Any:
        versions = copy.deepcopy(one["spec"]["versions"])
        for version in versions:
            version["schema"]["openAPIV3Schema"]["description"] = "another"
        return {"spec": {"versions": versions}}

    figures = {
        "create": client.cpu_ms(lambda: [client.create(one) for one in some]),
        "annotate": client.cpu_ms(lambda: patch(lambda _: _annotation_patch("a"))),
        "change schemas": client.cpu_ms(lambda: patch(wider)),
    }
    return {f"{name}, ms": value / _ROUNDS for name, value in figures.items()}


def _annotation_patch(text: str) -> Any:
    return {"metadata": {"annotations": {"example.com/note": text}}}


def _measure_idle(server: Measured, empty: float, size: int) -> Figures:
    """Wait until the background work of a start is done; return CPU time and memory."""
    before, now = -1.0, server.cpu_seconds()
    while now - before > 0.02:
        server.pause(1.0)
        before, now = now, server.cpu_seconds()
    resident = server.resident_mb()
    return {
        "CPU of a start, s": now,
        "resident MB": resident,
        "memory per byte of JSON": (resident - empty) * 2**20 / size,
    }


def _measure_documents(client: Client) -> Figures:
    """Measure each document on its first request, and again after a CRD was written."""
    listed = json.loads(client.ask("GET", f"{CRDS}?limit=1"))["items"][0]
    group, version = listed["spec"]["group"], listed["spec"]["versions"][0]["name"]
    asked = {
        "/apis": lambda: client.ask("GET", "/apis"),
        "/apis, aggregated": lambda: client.ask("GET", "/apis", accept=AGGREGATED),
        "/apis/GROUP/VERSION": lambda: client.ask("GET", f"/apis/{group}/{version}"),
        "/openapi/v3/…": lambda: client.ask("GET", f"/openapi/v3/apis/{group}/{version}"),
        "/openapi/v3": lambda: client.ask("GET", "/openapi/v3"),
        "/openapi/v2": lambda: client.ask("GET", "/openapi/v2"),
    }
    figures: Figures = {}
    for name, ask in asked.items():
        figures[f"{name}, first, ms"] = client.cpu_ms(ask)
        client.ask(
            "PATCH", f"{CRDS}/{listed['metadata']['name']}", _annotation_patch(name), media=_MERGE
        )
        figures[f"{name}, after a write, ms"] = client.cpu_ms(ask)
    return figures | {"resident MB after all documents": client.server.resident_mb()}


def _server(folder: Path, flags: list[str]) -> AbstractContextManager[Measured]:
    return serving(f"sqlite:{folder}/bench.db", folder, *flags)


def _table(steps: dict[int, Figures]) -> None:
    print("| CRDs | " + " | ".join(f"{step:,}".replace(",", " ") for step in steps) + " |")
    print("| --- |" + " --- |" * len(steps))
    for name in next(iter(steps.values())):
        cells = " | ".join(f"{figures[name]:.3g}" for figures in steps.values())
        print(f"| {name} | {cells} |")


if __name__ == "__main__":
    main()
