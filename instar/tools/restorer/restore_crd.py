"""Restores a deleted CRD and then its objects.

``instar restore crd`` calls this; ``restore_object.py`` writes each object.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import field

from instar.base.errors import AlreadyExists, ApiError, Expired
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.api.crd import CLEANUP_FINALIZER
from instar.tools.restorer.errors import RestoreError
from instar.tools.restorer.object_history import NamedObject
from instar.tools.restorer.restore_object import Restorer
from instar.wire.client.client import Client
from instar.wire.client.discovery import ResourceType
from instar.wire.client.paths import crd_path, resource_path

_PAGE = 500
_ESTABLISHED_SECONDS = 30.0
_CRDS = ResourceType(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    frozenset(),
)


@dataclass
class Objects:
    """The results for the objects of one CRD."""

    created: int = 0
    there: int = 0
    notes: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def named_crd(name: str) -> NamedObject:
    return NamedObject(_CRDS, "", name)


def without_traces(crd: Object) -> Object:
    """Return the CRD without its status and without the finalizer of its deletion."""
    metadata = dict(crd["metadata"])
    left = [each for each in metadata.get("finalizers") or () if each != CLEANUP_FINALIZER]
    metadata["finalizers"] = left
    kept = {name: value for name, value in crd.items() if name != "status"}
    return {**kept, "metadata": metadata}


async def established(client: Client, name: str) -> None:
    """Wait until the CRD is served."""
    try:
        async with asyncio.timeout(_ESTABLISHED_SECONDS):
            while True:
                if _is_established(await client.get(crd_path(name))):
                    return
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise RestoreError(f"{name} exists and does not become Established") from None


def _is_established(crd: Object) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


async def objects_at(client: Client, crd: Object, revision: int) -> AsyncIterator[Object]:
    """Yield the objects of a CRD at a revision, in its storage version."""
    spec = crd["spec"]
    [version] = [each["name"] for each in spec["versions"] if each["storage"]]
    path = resource_path(spec["group"], version, spec["names"]["plural"])
    exact: dict[str, str | None] = {
        "resourceVersion": str(revision),
        "resourceVersionMatch": "Exact",
    }
    token = ""
    while True:
        try:
            page = await client.list(path, limit=_PAGE, continue_=token, **exact)
        except Expired:
            raise RestoreError(f"revision {revision} is compacted (increase --history)") from None
        for item in page.get("items") or ():
            yield item
        token = (page.get("metadata") or {}).get("continue") or ""
        exact = {}
        if not token:
            return


async def restore_objects(
    restorer: Restorer, crd: Object, objects: AsyncIterator[Object]
) -> Objects:
    """Create each object; refused ones are recorded and do not stop the others."""
    spec, done = crd["spec"], Objects()
    async for obj in objects:
        metadata = obj.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("name"):
            done.failed.append("an object without a name")
            continue
        version = str(obj.get("apiVersion") or "").rpartition("/")[2]
        kind = ResourceType(
            spec["group"], version, spec["names"]["plural"], spec["names"]["kind"], frozenset()
        )
        named = NamedObject(kind, str(metadata.get("namespace") or ""), str(metadata["name"]))
        try:
            restored = await restorer.create(named, obj)
        except AlreadyExists:
            done.there += 1
        except (ApiError, RestoreError) as error:
            done.failed.append(f"{named}: {error}")
        else:
            done.created += 1
            done.notes += [f"{named}: {note}" for note in restored.notes]
    return done
