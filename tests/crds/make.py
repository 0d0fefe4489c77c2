"""Small CRDs to break, and the road every written CRD takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.api.crd_codec import decode, from_internal, to_internal
from instar.crds.defaults import with_defaults
from instar.crds.strategy import prepare_for_create, prepare_for_update
from instar.crds.validate import validate_create
from instar.crds.validate_update import validate_update
from instar.plain import Object

NOW = "2026-01-02T03:04:05Z"
LATER = "2026-02-02T03:04:05Z"
CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"


def version(name: str = "v1", schema: Object | None = None, **fields: Any) -> Object:
    return {
        "name": name,
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": schema or {"type": "object"}},
        **fields,
    }


def crd(*versions: Object, plural: str = "foos", **spec: Any) -> Object:
    """A v1 CRD; the first version is the storage version unless one says otherwise."""
    listed = [dict(item) for item in versions or (version(),)]
    if not any(item["storage"] for item in listed):
        listed[0]["storage"] = True
    group = spec.get("group", "example.com")
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Foo"},
            "versions": listed,
            **spec,
        },
    }


def with_schema(**keywords: Any) -> Object:
    return crd(version(schema={"type": "object", **keywords}))


def with_field(**keywords: Any) -> Object:
    return with_schema(properties={"a": keywords})


def internal(obj: Object) -> Object:
    """A request as the strategies get it."""
    at = obj["apiVersion"].rpartition("/")[2]
    return to_internal(with_defaults(decode(obj, at).obj))


def created(obj: Object) -> Object:
    return prepare_for_create(internal(obj))


def written(obj: Object) -> Object:
    """The v1 form right after create."""
    return from_internal(created(obj), "v1")


def problems(obj: Object) -> list[str]:
    at = obj["apiVersion"].rpartition("/")[2]
    return [str(error) for error in validate_create(created(obj), version=at)]


def update_problems(new: Object, old: Object, *, established: bool = False) -> list[str]:
    before = created(old)
    if established:
        condition = {"type": "Established", "status": "True", "lastTransitionTime": NOW}
        before["status"]["conditions"] = [condition]
    after = prepare_for_update(internal(new), before)
    return [str(error) for error in validate_update(after, before)]


def corpus() -> Iterator[tuple[Path, Object]]:
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus of real CRDs at {CORPUS}")
    for path in sorted(CORPUS.glob("*/*/*.yaml")):
        for document in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
            if document:
                yield path, document
