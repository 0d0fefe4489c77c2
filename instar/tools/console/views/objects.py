"""View: one object at every version, and the version it is stored at.

Called by ``tools/console/api.py``.
"""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from instar.base.errors import ApiError, NotFound
from instar.base.json_values import Object
from instar.tools.migrator.live_crd import LiveCrd, read_live_crd
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path

NO_NAMESPACE = "_"


async def object_everywhere(client: Client, crd: str, namespace: str, name: str) -> Object:
    """Return the object at each version. Raises ``ApiError`` if it is readable at none."""
    live = read_live_crd(await client.get(crd_path(crd)))
    key = name if namespace == NO_NAMESPACE else f"{namespace}/{name}"
    stored = await _stored(client, live, namespace, name)
    read = await asyncio.gather(
        *(_read(client, live, version.name, key) for version in live.crd.versions if version.served)
    )
    if read and all(isinstance(found, NotFound) for found in read):
        raise next(found for found in read if isinstance(found, NotFound))
    answers = iter(read)
    return {
        "crd": crd,
        "storedVersion": None if stored is None else stored["version"],
        "storedBytes": None if stored is None else stored["bytes"],
        "versions": [
            {
                "version": version.name,
                "served": version.served,
                "storage": version.storage,
                "stored": None if stored is None else stored["version"] == version.name,
                **_answer(next(answers) if version.served else None),
            }
            for version in live.crd.versions
        ],
    }


async def _read(client: Client, live: LiveCrd, version: str, key: str) -> Object | ApiError:
    try:
        return await client.get(live.path(version, key))
    except ApiError as error:
        return error


def _answer(found: Object | ApiError | None) -> Object:
    if isinstance(found, ApiError):
        return {"object": None, "error": found.to_status()}
    return {"object": found, "error": None}


async def _stored(client: Client, live: LiveCrd, namespace: str, name: str) -> Object | None:
    crd = live.crd
    parts = ("instar", "stored", crd.group, crd.names.plural, namespace, name)
    try:
        return await client.get("".join(f"/{quote(part, safe='')}" for part in parts))
    except ApiError:
        return None  # not our server, so the stored version is unknown
