"""The laws that matter most, on real CRDs with generated objects."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from instar.kube.api.encoding.manifests import documents
from instar.kube.apply.applying import Application, apply_patch
from instar.kube.apply.compare import compare
from instar.kube.apply.conversion_requests import drive
from instar.kube.apply.managers import Writer, ownership_before, track_update
from instar.kube.apply.ownership_schema import compile_schema
from instar.kube.apply.validate import type_problems
from instar.kube.schema.generation.objects import objects
from instar.kube.schema.structure.parse import structural
from instar.kube.schema.structure.structural import Structural
from tests.apply.support import same_object
from tests.support.corpus import CORPUS, needs_corpus

pytestmark = needs_corpus
V1, KIND = "g.io/v1", "Thing"


@cache
def schemas() -> list[Structural]:
    """Every schema of each project's newest release."""
    files = [path for project in CORPUS.iterdir() if project.is_dir() for path in _newest(project)]
    crds = [
        found.value for path in sorted(files) for found in documents(path.read_text(), str(path))
    ]
    return [
        structural(version["schema"]["openAPIV3Schema"])
        for crd in crds
        if crd.get("apiVersion") == "apiextensions.k8s.io/v1"
        for version in crd["spec"]["versions"]
    ]


def _newest(project: Path) -> list[Path]:
    def release(folder: Path) -> list[int]:
        return [int(part) for part in folder.name.lstrip("v").split(".")]

    return list(max(project.iterdir(), key=release).glob("*.yaml"))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_valid_objects_can_be_applied_whole_twice_and_updated(data: st.DataObject) -> None:
    node = data.draw(st.sampled_from(schemas()))
    schema = compile_schema(node)
    made = objects(node, api_version=V1, kind=KIND)
    obj: dict[str, Any] = data.draw(made)
    obj.get("metadata", {}).pop("managedFields", None)

    assert type_problems(schema, obj) == []
    request = Application(Writer("one", V1, "2026-01-01T00:00:00Z"), obj, None, {V1: schema})
    first = drive(apply_patch(request), same_object)
    # An object of nothing but empty keyed lists owns nothing: the next apply finds it untracked.
    assume(first.managed_fields is not None)
    live = copy.deepcopy(first.obj)
    live["metadata"]["managedFields"] = first.managed_fields
    again = Application(Writer("one", V1, "2026-01-01T00:00:09Z"), obj, live, {V1: schema})
    second = drive(apply_patch(again), same_object)
    assert not second.changed
    assert second.managed_fields == first.managed_fields

    new = data.draw(made)
    new["metadata"].pop("managedFields", None)
    before = ownership_before(live, new)
    writer = Writer("two", V1, "2026-01-01T00:00:10Z")
    track_update(before, writer, {V1: live}, {V1: new}, {V1: schema})
    assert compare(schema, new, copy.deepcopy(new)).empty()
