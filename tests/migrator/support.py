"""What the tests of this room share: a CRD with two versions, many objects, a patient wait."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from typing import Any

from instar.base.json_values import Object
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import load_access
from instar.wire.client.paths import crd_path
from tests.support import crds
from tests.support.server import LiveServer

_numbers = itertools.count()
PATIENCE = 20.0


def schema(*fields: str, **extra: Any) -> Object:
    properties: Object = {name: {"type": "string"} for name in (*fields, "host", "port")}
    properties |= {"size": {"type": "integer"}, **extra}
    return crds.fields(spec=crds.fields(**properties), status=crds.fields())


def crd(
    *, storage: str = "v1beta1", served: tuple[str, ...] = ("v1beta1", "v1"), **changes: Any
) -> Object:
    """A fresh CRD, versions v1beta1 and v1, in a group of its own."""
    group = f"migrated{next(_numbers)}.example.com"
    given = changes.pop("schema", None)
    each = changes.pop("schemas", {})
    versions = [
        crds.version(
            name,
            each.get(name) or given or schema(),
            served=name in served,
            storage=name == storage,
            subresources={"status": {}},
        )
        for name in ("v1beta1", "v1")
    ]
    return crds.crd(*versions, group=group, plural="widgets", kind="Widget", **changes)


def lossy_crd(server: LiveServer, count: int, legacy: Iterable[int], **changes: Any) -> Object:
    """A CRD with ``count`` objects at v1beta1, whose field ``spec.legacy`` v1 does not have; the
    objects with the numbers ``legacy`` set it. v1 is the storage version by now."""
    definition = crd(schemas={"v1beta1": schema("legacy")}, **changes)
    server.create_crd(definition)
    fill(server, definition, count)
    for number in legacy:
        path = objects_path(definition, "v1beta1", f"w{number:05d}")
        patch = {"spec": {"legacy": f"kept-{number}"}}
        answer = server.request("PATCH", path, patch, content_type="application/merge-patch+json")
        assert answer.status == 200, answer.text
    store_at(server, definition, "v1")
    return definition


def with_legacy(server: LiveServer, definition: Object) -> int:
    """How many objects show ``spec.legacy`` at v1beta1."""
    items = server.request("GET", objects_path(definition, "v1beta1")).json["items"]
    return sum("legacy" in item["spec"] for item in items)


def group_of(definition: Object) -> str:
    return str(definition["spec"]["group"])


def name_of(definition: Object) -> str:
    return str(definition["metadata"]["name"])


def objects_path(
    definition: Object, version: str, name: str = "", namespace: str = "default"
) -> str:
    path = f"/apis/{group_of(definition)}/{version}/namespaces/{namespace}/widgets"
    return f"{path}/{name}" if name else path


def fill(
    server: LiveServer, definition: Object, count: int, version: str = "v1beta1", start: int = 0
) -> None:
    """``count`` objects named w00000, w00001, … made through the API."""

    async def work() -> None:
        async with client(server) as api:
            path = objects_path(definition, version)
            limit = asyncio.Semaphore(32)

            async def one(number: int) -> None:
                async with limit:
                    await api.post(path, widget(definition, number, version))

            await asyncio.gather(*(one(number) for number in range(start, start + count)))

    asyncio.run(work())


def widget(definition: Object, number: int, version: str = "v1beta1") -> Object:
    return {
        "apiVersion": f"{group_of(definition)}/{version}",
        "kind": "Widget",
        "metadata": {"name": f"w{number:05d}", "labels": {"n": str(number % 7)}},
        "spec": {"host": f"host-{number}", "port": str(number), "size": number},
    }


def client(server: LiveServer, **options: Any) -> Client:
    return Client(load_access(server.kubeconfig), **options)


def edit_crd(server: LiveServer, definition: Object, change: Callable[[Object], None]) -> Object:
    """Read, change, write; the CRD as the server has it afterwards."""
    path = crd_path(name_of(definition))
    current: Object = server.request("GET", path).json
    change(current)
    answer = server.request("PUT", path, current)
    assert answer.status == 200, answer.text
    changed: Object = answer.json
    return changed


def store_at(server: LiveServer, definition: Object, version: str) -> Object:
    def change(current: Object) -> None:
        for item in current["spec"]["versions"]:
            item["storage"] = item["name"] == version

    return edit_crd(server, definition, change)


def census(server: LiveServer, definition: Object) -> dict[str, int]:
    document = server.request("GET", "/instar/census").json
    counts: dict[str, int] = document["crds"][name_of(definition)]["objects"]
    return counts


def stored_versions(server: LiveServer, definition: Object) -> list[str]:
    current = server.request("GET", crd_path(name_of(definition))).json
    found: list[str] = current["status"]["storedVersions"]
    return found


def stale_crd(server: LiveServer, count: int, **changes: Any) -> Object:
    """A CRD with ``count`` objects stored at v1beta1 while v1 is the storage version."""
    definition = crd(**changes)
    server.create_crd(definition)
    fill(server, definition, count)
    store_at(server, definition, "v1")
    return definition


def migrating_condition(server: LiveServer, definition: Object) -> Object:
    current = server.request("GET", crd_path(name_of(definition))).json
    found: Object = next(
        item for item in current["status"]["conditions"] if item["type"] == "StorageMigrating"
    )
    return found


def forbid_size(server: LiveServer, definition: Object, size: int) -> None:
    """A rule that ratcheting does not forgive."""

    def tighten(current: Object) -> None:
        for item in current["spec"]["versions"]:
            spec = item["schema"]["openAPIV3Schema"]["properties"]["spec"]
            text = f"self.size != {size} || (oldSelf.hasValue() && false)"
            spec["x-kubernetes-validations"] = [{"rule": text, "optionalOldSelf": True}]

    edit_crd(server, definition, tighten)
