"""Summaries of all CRDs, cached by uid and resourceVersion.

Used by the overview and webhook views. A CRD may be a megabyte of schema, and pages poll every few
seconds. A visitor gets summaries only of CRDs that a metadata list with the visitor's own
credentials has just returned.
"""

from __future__ import annotations

from typing import Any

from instar.base.errors import NotFound
from instar.base.json_values import Object
from instar.base.weighted_lru import WeightedLru
from instar.kube.api.crd import Crd, read_crd
from instar.kube.api.crd_codec import CrdDecodeError
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path

_MAX_SINGLE_READS = 8
"""Up to this number of CRDs are read one by one; more are read by a list."""
_PAGE = 25


class Summaries:
    """Cache keyed by uid and resourceVersion, so entries are never stale."""

    def __init__(self) -> None:
        self._kept: WeightedLru[tuple[str, str], Object] = WeightedLru(4 << 20)

    async def all(self, client: Client) -> list[Object]:
        """Return a summary of every CRD that the visitor may list. Raises ``ApiError``."""
        named: dict[str, tuple[str, str]] = {}
        async for page in client.metadata_pages(crd_path()):
            for item in page.get("items") or ():
                metadata = item["metadata"]
                named[metadata["name"]] = (metadata.get("uid", ""), metadata["resourceVersion"])
        missing = [name for name, key in named.items() if self._kept.get(key) is None]
        fresh = await self._read(client, missing)
        found = (fresh.get(name) or self._kept.get(key) for name, key in named.items())
        return [summary for summary in found if summary is not None]

    async def _read(self, client: Client, names: list[str]) -> dict[str, Object]:
        found: dict[str, Object] = {}
        if len(names) <= _MAX_SINGLE_READS:
            for name in names:
                try:
                    self._keep(await client.get(crd_path(name)), found)
                except NotFound:
                    continue  # deleted meanwhile
            return found
        async for page in client.pages(crd_path(), limit=_PAGE):
            for raw in page.get("items") or ():
                self._keep(raw, found)
        return found

    def _keep(self, raw: Object, found: dict[str, Object]) -> None:
        summary, metadata = summary_of(raw), raw["metadata"]
        found[metadata["name"]] = summary
        key = (metadata.get("uid", ""), metadata["resourceVersion"])
        bundle = len((summary["webhook"] or {}).get("bundle", ""))
        self._kept.put(key, summary, 1_000 + 200 * len(summary["versions"]) + bundle)


def summary_of(raw: Object) -> Object:
    """Return what the list of CRDs shows of one; an unreadable CRD has its error instead."""
    metadata = raw["metadata"]
    base: dict[str, Any] = {
        "name": metadata["name"],
        "resourceVersion": metadata.get("resourceVersion", ""),
        "created": metadata.get("creationTimestamp"),
    }
    try:
        crd = read_crd(raw)
    except CrdDecodeError as error:
        spec = raw.get("spec") or {}
        return {
            **base,
            "group": str(spec.get("group") or ""),
            "kind": "",
            "plural": "",
            "scope": "",
            "established": False,
            "deleting": False,
            "migrating": False,
            "conversion": "",
            "webhook": None,
            "storageVersion": "",
            "storedVersions": [],
            "versions": [],
            "problems": [f"not a usable CRD: {error}"],
        }
    return {**base, **_short(crd)}


def _short(crd: Crd) -> Object:
    return {
        "group": crd.group,
        "kind": crd.names.kind,
        "plural": crd.names.plural,
        "scope": "Namespaced" if crd.namespaced else "Cluster",
        "established": crd.is_true("Established"),
        "deleting": crd.deleting,
        "migrating": crd.is_true("StorageMigrating"),
        "conversion": crd.conversion.strategy,
        "storageVersion": crd.storage_version(),
        "storedVersions": list(crd.stored_versions),
        "versions": [
            {
                "name": version.name,
                "served": version.served,
                "storage": version.storage,
                "deprecated": version.deprecated,
            }
            for version in crd.versions
        ],
        "problems": list(_problems(crd)),
        "webhook": _webhook(crd),
    }


def _webhook(crd: Crd) -> Object | None:
    """Return the conversion webhook, if there is one."""
    client = crd.conversion.client
    if crd.conversion.strategy != "Webhook" or client is None:
        return None
    service = client.service
    where = client.url or ""
    if service is not None:
        where = service_text(service.namespace, service.name, service.port, service.path)
    return {"where": where, "bundle": client.ca_bundle or ""}


def service_text(namespace: str, name: str, port: int, path: str) -> str:
    return f"service {namespace}/{name}:{port}{path if path.startswith('/') else f'/{path}'}"


_BAD = {"NonStructuralSchema": "True", "NamesAccepted": "False", "Established": "False"}


def _problems(crd: Crd) -> list[str]:
    return [
        f"{type}: {condition.get('message') or condition.get('reason') or ''}"
        for type, condition in crd.conditions.items()
        if condition.get("status") == _BAD.get(type)
    ]
