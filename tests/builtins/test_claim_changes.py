"""Which changes of its spec a PersistentVolumeClaim allows."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.builtin_rules.claims import claim_change_errors
from tests.support.server import live_server

_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_SIZE = {"requests": {"storage": "2Gi"}}


def _claim(annotation: str | None = None, bound: Any = None, **spec: Any) -> dict[str, Any]:
    annotations = {} if annotation is None else {_ANNOTATION: annotation}
    status = {"phase": "Pending"} if bound is None else {"phase": "Bound", **bound}
    return {
        "metadata": {"name": "c", "annotations": annotations},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": _SIZE, **spec},
        "status": status,
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_claim(), _claim(storageClassName="fast")),
        (_claim(), _claim(storageClassName="")),
        (_claim("fast"), _claim("fast", storageClassName="fast")),
        (_claim("fast"), _claim(storageClassName="fast")),
        (_claim(storageClassName="a"), _claim(storageClassName="a", volumeName="v")),
        (_claim(bound={}), _claim(bound={}, resources={"requests": {"storage": "3Gi"}})),
        (_claim(bound={}), _claim(bound={}, volumeAttributesClassName="gold")),
    ],
)
def test_an_allowed_change(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert claim_change_errors(new, old) == []


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (_claim(storageClassName="a"), _claim(storageClassName="b"), "spec"),
        (_claim(storageClassName="a"), _claim(), "spec"),
        (_claim("fast"), _claim("fast", storageClassName="slow"), "spec"),
        (_claim("fast"), _claim("slow"), f"metadata.annotations.{_ANNOTATION}"),
        (_claim("fast"), _claim(), f"metadata.annotations.{_ANNOTATION}"),
        (_claim(volumeName="v"), _claim(volumeName="w"), "spec"),
        (_claim(), _claim(resources={"requests": {"storage": "3Gi"}}), "spec"),
        (
            _claim(bound={}),
            _claim(bound={}, resources={"requests": {"storage": "2Gi", "x": "1"}}),
            "spec",
        ),
        (
            _claim(bound={"currentVolumeAttributesClassName": "g"}, volumeAttributesClassName="g"),
            _claim(bound={"currentVolumeAttributesClassName": "g"}),
            "spec.volumeAttributesClassName",
        ),
    ],
)
def test_a_refused_change(old: dict[str, Any], new: dict[str, Any], field: str) -> None:
    assert [error.field for error in claim_change_errors(new, old)] == [field]


def test_a_claim_that_waits_gets_its_class_by_a_patch() -> None:
    path = "/api/v1/namespaces/default/persistentvolumeclaims"
    with live_server(storage="memory:") as server:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": _SIZE}
        server.request("POST", path, {"metadata": {"name": "c"}, "spec": spec})
        answer = server.request(
            "PATCH",
            f"{path}/c",
            {"spec": {"storageClassName": "fast"}},
            content_type="application/merge-patch+json",
        )

    assert (answer.status, answer.json["spec"]["storageClassName"]) == (200, "fast")
