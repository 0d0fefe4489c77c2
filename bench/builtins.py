"""Compares the cost of creating built-in objects and custom resources, and measures the memory of a
server with all built-in kinds.

``python -m bench.builtins [--count N]``: microseconds of CPU per create, in process, best of five
rounds; each built-in kind, a custom resource with the same body, and a small custom resource.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from bench.fixtures import BASE, CRDS, crd, thing
from bench.inprocess import Caller
from bench.process import scratch, serving
from instar.kube.facts.types import schema_of
from instar.server.lifecycle.lifetime import running
from instar.server.settings import Settings

ROUNDS = 5
_CONTAINER = {
    "name": "web",
    "image": "nginx:1.25",
    "ports": [{"containerPort": 80}],
    "env": [{"name": "A", "value": "b"}, {"name": "C", "value": "d"}],
    "resources": {"limits": {"cpu": "1", "memory": "64Mi"}},
}
_LABELS = {"app": "web"}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": {"containers": [_CONTAINER]}}
BODIES: Mapping[str, tuple[str, str, str, dict[str, Any]]] = {
    "ConfigMap": ("v1", "api/v1", "configmaps", {"data": {"a": "b", "c": "d"}}),
    "Secret": ("v1", "api/v1", "secrets", {"data": {"a": "Yg=="}}),
    "Pod": ("v1", "api/v1", "pods", {"spec": {"containers": [_CONTAINER]}}),
    "Deployment": (
        *("apps/v1", "apis/apps/v1", "deployments"),
        {"spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}},
    ),
    "Job": (
        *("batch/v1", "apis/batch/v1", "jobs"),
        {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [_CONTAINER]}}}},
    ),
    "NetworkPolicy": (
        *("networking.k8s.io/v1", "apis/networking.k8s.io/v1", "networkpolicies"),
        {"spec": {"podSelector": {"matchLabels": _LABELS}, "policyTypes": ["Ingress"]}},
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.builtins", description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="creates of a round")
    count = parser.parse_args().count
    small, pairs = asyncio.run(measure(count))
    print(f"a small custom resource: {small:.0f} µs")
    for kind, (own, custom) in pairs.items():
        print(
            f"{kind:14} {own:6.0f} µs, with the same body as a custom resource {custom:6.0f} µs: "
            f"{own / custom:.2f} ×; beside the small one {own / small:.2f} ×"
        )
    with scratch() as folder, serving(f"sqlite:{folder}/bench.db", folder) as server:
        print(f"start {server.started_in:.3f} s, {server.resident_mb():.1f} MB resident")


async def measure(count: int) -> tuple[float, dict[str, tuple[float, float]]]:
    async with running(Settings(port=0, storage="memory:", bootstrap_objects=False)) as server:
        caller = Caller(server)
        await caller.call("POST", CRDS, json.dumps(crd()).encode())
        small = await best(caller, BASE, thing(), count)
        pairs: dict[str, tuple[float, float]] = {}
        for kind, (api_version, root, plural, body) in BODIES.items():
            path = f"/{root}/namespaces/default/{plural}"
            own = await best(caller, path, {"metadata": {"generateName": "a-"}, **body}, count)
            await caller.call("POST", CRDS, json.dumps(twin(api_version, kind, plural)).encode())
            custom = {
                "apiVersion": "twin.example.com/v1",
                "kind": kind,
                "metadata": {"generateName": "a-"},
                **body,
            }
            path = f"/apis/twin.example.com/v1/namespaces/default/{plural}"
            pairs[kind] = own, await best(caller, path, custom, count)
        return small, pairs


def twin(api_version: str, kind: str, plural: str) -> dict[str, Any]:
    """Return a CRD with the schema of a built-in kind."""
    schema = structural(schema_of(api_version, kind) or {})
    schema["properties"].pop("metadata", None)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.twin.example.com"},
        "spec": {
            "group": "twin.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def structural(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with only the keywords that the benchmark CRD keeps."""
    out = {
        key: value
        for key, value in node.items()
        if key in ("type", "properties", "items", "additionalProperties")
        or key in ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
    }
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), Mapping):
            out[key] = structural(out[key])
    if "properties" in out:
        out["properties"] = {name: structural(item) for name, item in out["properties"].items()}
    return out


async def best(caller: Caller, path: str, body: dict[str, Any], count: int) -> float:
    """Return the microseconds of CPU per create, best of all rounds; the first round warms up."""
    data = json.dumps(body).encode()
    found: list[float] = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(count):
            await caller.call("POST", path, data)
        found.append((time.process_time() - began) / count * 1e6)
    return min(found)


if __name__ == "__main__":
    main()
