"""Small worlds to rehearse on: CRDs, objects and clients as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import orjson

from instar.base.json_values import Object
from instar.tools.rehearsal.converting import Converting
from instar.tools.rehearsal.model import Rehearsal
from instar.tools.rehearsal.run import RehearsalOptions, RehearsalRelease, rehearse
from instar.tools.snapshots.captured_cluster import CapturedCluster, RecordedUse
from instar.tools.snapshots.manifest import AUDIT, CRDS, objects_of
from instar.tools.snapshots.parts import SnapshotPart

GROUP = "example.com"
NAME = f"widgets.{GROUP}"
SIZE: Object = {"type": "integer"}
TEXT: Object = {"type": "string"}


def schema(properties: Mapping[str, Any], **more: Any) -> Object:
    spec = {"type": "object", "properties": dict(properties), **more}
    return {
        "type": "object",
        "properties": {"spec": spec, "status": {"type": "object", "properties": {"phase": TEXT}}},
    }


def version(name: str, properties: Mapping[str, Any], **more: Any) -> Object:
    rules = {key: more.pop(key) for key in list(more) if key in ("required",) or key[:2] == "x-"}
    return {
        "name": name,
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": schema(properties, **rules)},
        "subresources": {"status": {}},
        **more,
    }


def crd(*versions: Object, storage: str = "", stored: Iterable[str] = (), **spec: Any) -> Object:
    storage = storage or versions[0]["name"]
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    document: Object = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": names,
            "versions": [{**each, "storage": each["name"] == storage} for each in versions],
            **spec,
        },
    }
    if stored:
        document["status"] = {"storedVersions": list(stored)}
    return document


def owned(manager: str, at: str, fields: Object, operation: str = "Update", **more: Any) -> Object:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": f"{GROUP}/{at}",
        "time": "2026-01-02T03:04:05Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


def widget(number: int, at: str, spec: Object, **metadata: Any) -> Object:
    return {
        "apiVersion": f"{GROUP}/{at}",
        "kind": "Widget",
        "metadata": {
            "name": f"w{number}",
            "namespace": "default",
            "uid": f"00000000-0000-0000-0000-{number:012}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": 1,
            **metadata,
        },
        "spec": spec,
        "status": {"phase": "Ready"},
    }


def use(
    at: str, verb: str, agent: str = "argocd/v2", user: str = "ci", number: int = 1
) -> RecordedUse:
    return RecordedUse(GROUP, "widgets", at, verb, user, agent, number, "", "")


def world(
    the_crd: Object,
    objects: Iterable[Object] = (),
    uses: Iterable[RecordedUse] = (),
    events: Iterable[Object] = (),
    **more: Any,
) -> CapturedCluster:
    parts = [
        part(CRDS, [the_crd]),
        part(objects_of(the_crd["metadata"]["name"]), objects),
        part(AUDIT, events),
    ]
    return CapturedCluster("a test", parts, uses=list(uses), exact=True, **more)


def part(name: str, objects: Iterable[Object]) -> SnapshotPart:
    lines = [orjson.dumps(each) + b"\n" for each in objects]
    return SnapshotPart(name, lambda: BytesIO(b"".join(lines)), len(lines))


def rehearsed(
    before: CapturedCluster, *releases: Object, converting: Converting | None = None, **options: Any
) -> Rehearsal:
    named = [
        RehearsalRelease(f"r{number}", {crd["metadata"]["name"]: crd})
        for number, crd in enumerate(releases, 1)
    ]
    chosen = RehearsalOptions(converting=converting or Converting({}, {}), **options)
    return rehearse(before, named, chosen, lambda name, count: None)
