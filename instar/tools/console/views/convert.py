"""View: shows a pasted object at every version of its CRD, through the real conversion.

Called by ``tools/console/api.py``.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from instar.base import offload
from instar.base.errors import ApiError, BadRequest, NotFound
from instar.base.json_values import Object, copy_json
from instar.kube.api.crd import Crd, CrdVersion, read_crd
from instar.kube.api.encoding.manifests import UnreadableManifest, only_document
from instar.kube.schema.offline_requests import create
from instar.kube.schema.pipeline import pipeline_of
from instar.tools.console.views.conversion_client import ConversionClient, conversion_of
from instar.tools.console.views.summaries import Summaries
from instar.tools.sdk.checking.differences import object_differences
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path
from instar.wire.conversion.factory import ConversionServices

_MOST_DIFFERENCES = 200


class AcceptedObject(NamedTuple):
    """The object as a server would accept it."""

    obj: Object
    refusals: list[str]
    pruned: list[str]


async def convert(
    client: Client, summaries: Summaries, shown: Object, services: ConversionServices | None
) -> Object:
    """Return the object at every version. Raises ``ApiError``."""
    obj = await object_of(shown)
    crd = read_crd(await client.get(crd_path(await _crd_of(client, summaries, obj))))
    source = crd.version(str(obj["apiVersion"]).rpartition("/")[2])
    if source is None:
        raise NotFound(f"{crd.name} has no version {str(obj['apiVersion'])[:200]}", details={})
    taken = await offload.run_in_thread(lambda: _admitted(crd, source, obj))
    namespace = (obj.get("metadata") or {}).get("namespace") or ""
    conversion = await conversion_of(client, crd, str(namespace), services)
    lines = [await _at(conversion, crd, version, source, taken.obj) for version in crd.versions]
    return {
        "crd": crd.name,
        "from": source.name,
        "by": conversion.by,
        "versions": lines,
        "refusals": taken.refusals,
        "pruned": taken.pruned,
        "roundTrip": await _round_trip(conversion, crd, source, taken.obj, lines),
    }


async def object_of(shown: Object) -> Object:
    """Parse the pasted object. Raises ``BadRequest``."""
    obj = shown.get("object")
    if obj is None:
        text = shown.get("text")
        if not isinstance(text, str):
            raise BadRequest('send {"text": "…"} or {"object": {…}}')
        try:
            obj = await offload.run(len(text), lambda: only_document(text, "the object"))
        except UnreadableManifest as error:
            raise BadRequest(str(error)) from None
    if not isinstance(obj, dict):
        raise BadRequest("this is not an object")
    wrong = [name for name in ("apiVersion", "kind") if not isinstance(obj.get(name), str)]
    if wrong or not isinstance(obj.get("metadata") or {}, dict):
        raise BadRequest("an object has apiVersion, kind and metadata")
    return {"metadata": {}, **obj}


async def _crd_of(client: Client, summaries: Summaries, obj: Object) -> str:
    group, kind = str(obj["apiVersion"]).rpartition("/")[0], obj["kind"]
    for crd in await summaries.all(client):
        if (crd["group"], crd["kind"]) == (group, kind):
            return str(crd["name"])
    raise NotFound(f"no CRD defines {str(kind)[:100]} of group {group[:200]}", details={})


def _admitted(crd: Crd, version: CrdVersion, obj: Object) -> AcceptedObject:
    answer = create(pipeline_of(crd, version), obj)
    return AcceptedObject(answer.obj, answer.refusals, answer.unknown)


async def _at(
    conversion: ConversionClient, crd: Crd, version: CrdVersion, source: CrdVersion, obj: Object
) -> Object:
    line: dict[str, Any] = {
        "version": version.name,
        "served": version.served,
        "storage": version.storage,
        "object": None,
        "error": None,
    }
    began = time.perf_counter()
    try:
        if version.name == source.name:
            line["object"] = obj
        else:
            [found] = await conversion.convert([obj], version.name)
            line["object"] = await offload.run_in_thread(lambda: _pruned(crd, version, found))
    except ApiError as error:
        line["error"] = error.to_status()
    return {**line, "seconds": round(time.perf_counter() - began, 6)}


def _pruned(crd: Crd, version: CrdVersion, obj: Object) -> Object:
    seen: Object = copy_json(obj)
    pipeline_of(crd, version).after_conversion(seen)
    return seen


async def _round_trip(
    conversion: ConversionClient, crd: Crd, source: CrdVersion, obj: Object, lines: list[Object]
) -> Object | None:
    """Convert to the storage version and back, as a write and a read, and return the losses. None
    if the object is at that version already, or cannot be converted."""
    through = crd.storage_version()
    there = next((line["object"] for line in lines if line["version"] == through), None)
    if through == source.name or there is None:
        return None
    try:
        [back] = await conversion.convert([there], source.name)
    except ApiError as error:
        return {"through": through, "differences": [], "error": error.to_status()}
    again = await offload.run_in_thread(lambda: _pruned(crd, source, back))
    found = await offload.run_in_thread(lambda: list(map(str, object_differences(obj, again))))
    return {"through": through, "differences": found[:_MOST_DIFFERENCES], "error": None}
