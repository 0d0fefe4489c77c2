"""Small CRDs to break, and the road every written CRD takes."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from instar.kube.api.crd_codec import decode, from_internal, to_internal
from instar.kube.crds.defaults import with_defaults
from instar.kube.crds.strategy import prepare_for_create, prepare_for_update
from instar.kube.crds.validation.crd import validate_create
from instar.kube.crds.validation.update import validate_update
from tests.support.crds import crd, version

NOW = "2026-01-02T03:04:05Z"
LATER = "2026-02-02T03:04:05Z"


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
