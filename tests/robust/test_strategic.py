"""Strategic patches of long lists, which merge item by item, while /livez is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.robust.victim import Victim

PATH = "/api/v1/namespaces/default/configmaps"
STRATEGIC = "application/strategic-merge-patch+json"


def finalizers(count: int, first: int = 0) -> list[str]:
    return [f"a.b/f{at}" for at in range(first, first + count)]


def owners(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [
        {"apiVersion": "v1", "kind": "X", "name": f"n{at}", "uid": f"u{at}"}
        for at in range(first, first + count)
    ]


PATCHES: dict[str, Any] = {
    "finalizers": {"finalizers": finalizers(60_000)},
    "finalizers that are there": {"finalizers": finalizers(30_000, 20_000)},
    "owners": {"ownerReferences": owners(25_000)},
    "owners out of order": {"ownerReferences": owners(20_000)[::-1]},
    "an order": {
        "finalizers": finalizers(20_000),
        "$setElementOrder/finalizers": finalizers(40_000)[::-1],
    },
    "deletions": {"$deleteFromPrimitiveList/finalizers": finalizers(60_000)},
    "directives": {
        "ownerReferences": [{"$patch": "delete", "uid": f"u{at}"} for at in range(40_000)]
    },
}


@pytest.fixture
def patched(victim: Victim) -> Iterator[str]:
    metadata = {"name": "long", "finalizers": finalizers(30_000), "ownerReferences": owners(4_000)}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    assert victim.request("POST", PATH, body).status == 201
    yield f"{PATH}/long"
    nothing = json.dumps({"metadata": {"finalizers": None, "ownerReferences": None}})
    merge = "application/merge-patch+json"
    victim.request("PATCH", f"{PATH}/long", nothing, content_type=merge)
    victim.request("DELETE", f"{PATH}/long")


@pytest.mark.parametrize("name", PATCHES)
def test_long_lists(victim: Victim, patched: str, name: str) -> None:
    body = json.dumps({"metadata": PATCHES[name]})
    assert len(body) < 3 << 20
    with victim.watched():
        answer = victim.request("PATCH", patched, body, content_type=STRATEGIC)
    assert answer.status in (200, 422, 500), answer.text[:300]
    if answer.status == 500:
        assert "setElementOrder" in answer.json["message"]
