"""What a conversion webhook may answer to hurt whoever asked it, while /livez is asked."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from instar.base.json_values import Object
from tests.robust.conftest import CRDS, GROUP
from tests.robust.victim import Victim
from tests.support import crds, faults
from tests.support.webhook import Webhook

OPEN: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def members(handler: BaseHTTPRequestHandler) -> None:
    """Each unpacks to nothing, and there are very many."""
    faults.reply(handler, 200, gzip.compress(b"", 1) * 500_000, Content_Encoding="gzip")


def deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.fixture(scope="module")
def hook() -> Iterator[Webhook]:
    with Webhook() as hook:
        yield hook


def converted(victim: Victim, hook: Webhook, name: str) -> int:
    """The status of reading at v2 what is stored at v1."""
    group = f"{name}.{GROUP}"
    crd = crds.crd(
        *(crds.version(version, crds.fields(spec=OPEN)) for version in ("v1", "v2")),
        group=group,
        plural="hooks",
        kind="Hook",
        conversion=hook.conversion(),
    )
    assert victim.request("POST", CRDS, crd).status == 201
    frame = {"apiVersion": f"{group}/v1", "kind": "Hook", "metadata": {"name": "a"}}
    path = f"/apis/{group}/v{{}}/namespaces/default/hooks"
    assert victim.request("POST", path.format(1), frame).status == 201
    with victim.watched():
        status = victim.request("GET", path.format(2) + "/a").status
        assert victim.request("GET", path.format(2)).status == status
        assert victim.request("GET", path.format(1) + "/a").status == 200
    return status


def test_very_many_empty_members(
    victim: Victim, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(faults.HTTP_FAULTS, "members", members)
    monkeypatch.setattr(hook, "fault", "members")
    assert converted(victim, hook, "members") == 500


@pytest.mark.parametrize("depth", [400, 900])
def test_an_object_deeper_than_any_other(
    victim: Victim, hook: Webhook, monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    def convert(obj: Object, api_version: str) -> Object:
        return {**obj, "apiVersion": api_version, "spec": {"free": deep(depth)}}

    monkeypatch.setattr(hook, "convert", convert)
    assert converted(victim, hook, f"deep{depth}") == 500
