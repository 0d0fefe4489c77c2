"""Rules over a large object share the processor with everyone else."""

from __future__ import annotations

import threading
from typing import Any

from tests.support.server import LiveServer

GROUP = "heavy.example.com"
PAIRS = "self.all(x, self.all(y, x != y || x == y))"


def crd() -> dict[str, Any]:
    numbers = {
        "type": "array",
        "maxItems": 1000,
        "items": {"type": "integer"},
        "x-kubernetes-validations": [{"rule": PAIRS}],
    }
    spec = {"type": "object", "properties": {"numbers": numbers}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
            ],
        },
    }


def test_others_are_answered_while_an_expensive_rule_runs(server: LiveServer) -> None:
    server.create_crd(crd())
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Thing",
        "metadata": {"name": "a"},
        "spec": {"numbers": list(range(10_000, 11_000))},
    }
    path = f"/apis/{GROUP}/v1/namespaces/default/things"
    answers: list[int] = []
    writing = threading.Thread(
        target=lambda: answers.append(server.request("POST", path, body).status)
    )
    writing.start()
    served = 0
    while writing.is_alive():
        assert server.request("GET", "/readyz").status == 200
        served += 1
    writing.join()

    assert answers == [422], "the rule outruns its budget"
    assert served > 3, "nobody else was answered meanwhile"
