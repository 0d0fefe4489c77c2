"""One server for the folder: it must survive everything that is done to it here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.robust.victim import Victim
from tests.support import crds

GROUP = "robust.example.com"


@pytest.fixture(scope="session")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    victim = Victim(tmp_path_factory.mktemp("victim"))
    answer = victim.request("POST", f"{CRDS}", thing_crd())
    assert answer.status == 201, answer.text
    yield victim
    victim.stop()


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = f"/apis/{GROUP}/v1/namespaces/default/things"
SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "numbers": {"type": "array", "items": {"type": "number"}},
        "whole": {"type": "array", "items": {"type": "integer"}},
        "texts": {"type": "array", "items": {"type": "string"}},
        "wait": {"type": "string", "format": "duration"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "replicas": {"type": "integer"},
    },
}


def thing_crd() -> dict[str, Any]:
    stored = crds.version("v1", crds.fields(spec=SPEC))
    return crds.crd(stored, group=GROUP, plural="things", kind="Thing")


def thing(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Thing",
        "metadata": {"name": name},
        "spec": spec,
    }
