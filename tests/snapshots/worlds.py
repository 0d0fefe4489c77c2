"""Small worlds for the tests of snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from instar.tools.snapshots.manifest import CRDS, Manifest, objects_of, others_of
from instar.tools.snapshots.snapshot_writer import SnapshotWriter

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "singular": "widget"},
        "versions": [
            {
                "name": version,
                "served": True,
                "storage": version == "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            }
                        },
                    }
                },
            }
            for version in ("v1", "v1beta1")
        ],
    },
}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}


def widget(name: str, version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"example.com/{version}",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": spec,
    }


def write_snapshot(
    path: Path,
    widgets: Sequence[Mapping[str, Any]] = (),
    *,
    version: int = 1,
    batch: int = 2,
    crds: Sequence[Mapping[str, Any]] = (CRD,),
) -> Path:
    packing = SnapshotWriter(path)
    packing.start()
    rows = []
    for name, objects in (
        (CRDS, crds),
        (others_of("namespaces"), [NAMESPACE]),
        (objects_of("widgets.example.com"), widgets),
    ):
        part = packing.part(name)
        for start in range(0, len(objects), batch):
            part.add([dict(each) for each in objects[start : start + batch]])
        rows.append(part.row("7"))
    manifest = Manifest("test:", "2026-01-01T00:00:00Z", parts=tuple(rows), version=version)
    packing.finish(manifest)
    return path
