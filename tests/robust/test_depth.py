"""Nesting is handled up to the limit and refused beyond it, through every verb and every form."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from instar.base.limits import MAX_DEPTH
from tests.robust.conftest import CRDS, GROUP, THINGS, thing
from tests.robust.victim import Victim
from tests.support import crds

JSON, YAML = "application/json", "application/yaml"
PATCHES = (
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)
AROUND = 8
"""Levels that stand around the nested value in a body."""


def nested(depth: int, kind: str) -> str:
    if kind == "lists":
        return "[" * depth + "]" * depth
    return '{"a":' * depth + "1" + "}" * depth


def object_text(name: str, inner: str) -> str:
    return json.dumps(thing(name, free={"x": "@"})).replace('"@"', inner)


@contextlib.contextmanager
def stored(victim: Victim, name: str) -> Iterator[str]:
    path = f"{THINGS}/{name}"
    assert victim.request("POST", THINGS, thing(name, free={})).status == 201
    yield path
    victim.request("DELETE", path)


def patch_text(media: str, name: str, inner: str) -> str:
    if "json-patch" in media:
        return f'[{{"op":"add","path":"/spec/free/x","value":{inner}}}]'
    if "apply" in media:
        return object_text(name, inner)
    return f'{{"spec":{{"free":{{"x":{inner}}}}}}}'


@pytest.mark.parametrize("kind", ["objects", "lists"])
@pytest.mark.parametrize("media", [JSON, YAML])
def test_the_deepest_that_is_allowed_goes_through_every_verb(
    victim: Victim, media: str, kind: str
) -> None:
    name = f"deepest-{kind}-{media.rpartition('/')[2]}"
    body = object_text(name, nested(MAX_DEPTH - AROUND, kind))
    with victim.watched():
        answer = victim.request("POST", THINGS, body, content_type=media)
        assert answer.status == 201, answer.text[:300]
        obj = victim.request("GET", f"{THINGS}/{name}").json
        for accept in (JSON, YAML, f"{JSON};as=Table;g=meta.k8s.io;v=v1"):
            read = victim.request("GET", f"{THINGS}/{name}?pretty=1", headers={"Accept": accept})
            assert read.status == 200, read.text[:300]
        obj["spec"]["replicas"] = 3
        assert victim.request("PUT", f"{THINGS}/{name}", obj).status == 200
        for patch in PATCHES:
            text = patch_text(patch, name, nested(MAX_DEPTH - AROUND - 2, kind))
            query = "?fieldManager=m&force=true"
            query = query if "apply" in patch else ""
            answer = victim.request("PATCH", f"{THINGS}/{name}{query}", text, content_type=patch)
            assert answer.status == 200, (patch, answer.text[:300])
        assert victim.request("DELETE", f"{THINGS}/{name}").status == 200


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 600, 10_001, 100_000, 1_000_000])
@pytest.mark.parametrize("kind", ["objects", "lists"])
def test_deeper_bodies_are_refused_by_every_verb(victim: Victim, kind: str, depth: int) -> None:
    if kind == "objects" and depth > 400_000:
        depth = 400_000  # as much as fits into a body
    inner = nested(depth, kind)
    with stored(victim, f"shallow-{kind}-{depth}") as path, victim.watched():
        name = path.rpartition("/")[2]
        whole = object_text(name, inner)
        asked: list[tuple[str, str, str, str]] = [
            ("POST", THINGS, whole, JSON),
            ("POST", THINGS, whole, YAML),
            ("PUT", path, whole, JSON),
            ("DELETE", path, f'{{"kind":"DeleteOptions","apiVersion":"v1","x":{inner}}}', JSON),
            *(("PATCH", path, patch_text(media, name, inner), media) for media in PATCHES),
        ]
        for method, where, body, media in asked:
            query = "?fieldManager=m" if "apply" in media else ""
            answer = victim.request(method, where + query, body, content_type=media)
            assert 400 <= answer.status < 500, (method, media, answer.text[:300])


@pytest.mark.parametrize("depth", [100, MAX_DEPTH, 2_000, 50_000])
def test_schemas_are_as_deep_as_they_like_or_refused(victim: Victim, depth: int) -> None:
    schema: Any = '{"type":"object","properties":{"a":' * depth + '{"type":"string"}' + "}}" * depth
    group = f"deep{depth}.{GROUP}"
    crd = crds.crd(
        crds.version("v1", crds.fields(spec={"x": "@"})), group=group, plural="deeps", kind="Deep"
    )
    body = json.dumps(crd).replace('{"x": "@"}', schema)
    with victim.watched():
        answer = victim.request("POST", CRDS, body)
        assert answer.status == 201 or 400 <= answer.status < 500, answer.text[:300]
        victim.request("GET", f"/openapi/v3/apis/{group}/v1")
        victim.request("DELETE", f"{CRDS}/deeps.{group}")


@pytest.mark.parametrize("depth", [MAX_DEPTH - AROUND, 600, 100_000])
def test_built_in_kinds_too(victim: Victim, depth: int) -> None:
    inner = nested(depth, "objects")
    path = "/api/v1/namespaces/default/configmaps"
    patch = f'{{"metadata":{{"annotations":{inner}}}}}'
    body = f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"deep"}},"data":{inner}}}'
    strategic = "application/strategic-merge-patch+json"
    good = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shallow"}}
    victim.request("POST", path, good)
    with victim.watched():
        assert 400 <= victim.request("POST", path, body).status < 500
        for media in (strategic, PATCHES[0]):
            answer = victim.request("PATCH", f"{path}/shallow", patch, content_type=media)
            assert 400 <= answer.status < 500, answer.text[:300]
