"""Measures the memory that stays in use after requests to many CRDs, not only their storage.

``python -m bench.workedcrds FOLDER [--crds 181] [--requests 10000]``: creates that many CRDs by
renaming real ones (``*/*/*.yaml``). For every served version a sample object is created, applied,
read, listed as a Table and looked up in discovery and OpenAPI, in rounds until the number of
requests is reached.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import re2

from bench.manycrds import AGGREGATED, Client, originals, renamed
from bench.process import scratch, serving

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_APPLY = "application/apply-patch+yaml"
_DEEPEST = 7
_BY_FORMAT = {"date-time": "2026-01-01T00:00:00Z", "byte": "YQ==", "duration": "1h"}
_TEXTS = ("1h", "https://example.com/a", "oci://example.com/a", "example.com/a", "A")
Ask = Callable[[Client], Any]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.workedcrds", description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--crds", type=int, default=181)
    parser.add_argument("--requests", type=int, default=10_000)
    options = parser.parse_args()
    made = list(islice(renamed(originals(options.corpus)), options.crds))
    size = sum(len(json.dumps(one)) for one in made) / 1e6
    with scratch() as folder:
        storage = f"sqlite:{folder}/bench.db"
        with serving(storage, folder) as server:
            client = Client(server)
            for one in made:
                client.create(one)
            print(f"{len(made)} CRDs of {size:.1f} MB created: {server.resident_mb():.0f} MB")
        with serving(storage, folder) as server:
            server.pause(3.0)
            print(f"after a restart: {server.resident_mb():.0f} MB", flush=True)
            _send_requests(Client(server), made, options.requests)


def _send_requests(client: Client, made: list[dict[str, Any]], requests: int) -> None:
    server, step, refused = client.server, max(1, requests // 10), 0
    for number, ask in enumerate(islice(_requests(made), requests), 1):
        try:
            ask(client)
        except AssertionError:
            refused += 1
        if number % step == 0:
            cpu = server.cpu_seconds()
            print(f"{number} requests: {server.resident_mb():.0f} MB, {cpu:.0f} s CPU", flush=True)
    server.pause(65.0)
    print(f"a minute later: {server.resident_mb():.0f} MB; {refused} were refused")


def _requests(made: list[dict[str, Any]]) -> Iterator[Ask]:
    """Yield requests for the objects of each CRD, then for documents about all CRDs, in rounds."""
    for turn in cycle(range(1_000_000)):
        for one in made:
            for version in filter(itemgetter("served"), one["spec"]["versions"]):
                yield from _requests_of(one["spec"], version, turn)
        yield lambda client: client.ask("GET", "/apis", accept=AGGREGATED)
        yield lambda client: client.ask("GET", "/openapi/v3")
        yield lambda client: client.ask("GET", "/openapi/v2")


def _requests_of(spec: dict[str, Any], version: dict[str, Any], turn: int) -> Iterator[Ask]:
    home = f"/apis/{spec['group']}/{version['name']}"
    place = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
    path, name = f"{home}{place}/{spec['names']['plural']}", f"sample-{version['name']}-{turn}"
    obj = {
        **sample(version["schema"]["openAPIV3Schema"], 0),
        "apiVersion": f"{spec['group']}/{version['name']}",
        "kind": spec["names"]["kind"],
        "metadata": {"name": name},
    }
    applied = f"{path}/{name}-applied?fieldManager=bench&force=true"
    yield lambda client: client.ask("POST", path, obj)
    yield lambda client: client.ask(
        "PATCH", applied, {**obj, "metadata": {"name": f"{name}-applied"}}, media=_APPLY
    )
    yield lambda client: client.ask("GET", path, accept=_TABLE)
    yield lambda client: client.ask("GET", f"{path}?limit=10")
    yield lambda client: client.ask("GET", home)
    yield lambda client: client.ask("GET", f"/openapi/v3{home}")


def sample(schema: dict[str, Any], depth: int) -> Any:
    """Return a value that usually satisfies the schema: required fields and those without complex
    rules.
    """
    for given in (schema.get("default"), *(schema.get("enum") or ())):
        if given is not None:
            return given
    match schema.get("type"):
        case "object":
            required = schema.get("required") or ()
            return {
                name: sample(below, depth + 1)
                for name, below in (schema.get("properties") or {}).items()
                if name in required or (depth < _DEEPEST and not _has_complex_rules(below))
            }
        case "array":
            wanted = depth < _DEEPEST and not _has_complex_rules(schema.get("items") or {})
            count = max(schema.get("minItems", 0), 1 if wanted else 0)
            return [sample(schema.get("items") or {}, depth + 1) for _ in range(count)]
        case "integer" | "number":
            return max(schema.get("minimum", 1), 1)
        case "boolean":
            return True
        case "string":
            texts = (_BY_FORMAT.get(schema.get("format", ""), "a"), *_TEXTS)
            fitting = (text for text in texts if re2.search(schema.get("pattern", ""), text))
            return next(fitting, "a").ljust(schema.get("minLength", 0), "a")
    return 1 if schema.get("x-kubernetes-int-or-string") else {}


def _has_complex_rules(schema: dict[str, Any]) -> bool:
    return any(key in schema for key in ("pattern", "oneOf", "anyOf", "x-kubernetes-validations"))


if __name__ == "__main__":
    main()
