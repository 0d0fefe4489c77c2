"""Looks, after a field was removed from a CRD, for objects that set it while it was being removed.

``cli/commands/fields.py`` calls it. Objects are counted before the CRD is changed, and a client may
write the field in between; the next write of such an object would drop it. Then the field is added
to the CRD again at once.
"""

from __future__ import annotations

import asyncio

from instar.base.errors import Conflict
from instar.base.json_values import Object, same_json
from instar.base.plurals import counted
from instar.cli.shared.failure import CliFailure
from instar.tools.migrator.census.field_holders import set_since
from instar.tools.migrator.census.version_census import exact_census
from instar.tools.migrator.live_crd import read_live_crd
from instar.tools.migrator.versions.field_removal import versions_with
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path

_ATTEMPTS = 5


async def confirm_field_removal(
    client: Client, before: Object, after: Object, path: str, revision: str, *, settle: float
) -> None:
    """Add the field again if an object written after ``revision`` sets it, and raise a
    ``CliFailure`` that names the object.
    """
    if await exact_census(client) is None:
        await asyncio.sleep(settle)
    live = read_live_crd(before)
    keys = await set_since(client, live, path, versions_with(before, path), revision)
    if not keys:
        return
    why = f"{counted(len(keys), 'object')} set it while it was being removed, for example {keys[0]}"
    for _ in range(_ATTEMPTS):
        current = await client.get(crd_path(before["metadata"]["name"]))
        if not _is_given_back(current, before, after):
            break
        try:
            await client.put(crd_path(live.name), current, fieldManager="instar-versions")
        except Conflict:
            continue
        raise CliFailure(f"{path} was put back at once, because {why}")
    raise CliFailure(f"{why}; add {path} to the CRD again: other clients change it")


def _is_given_back(current: Object, before: Object, after: Object) -> bool:
    """Put the earlier schemas into the CRD. Return False if other clients changed them since."""
    earlier = {item["name"]: item for item in before["spec"]["versions"]}
    written = {item["name"]: item for item in after["spec"]["versions"]}
    for item in current["spec"]["versions"]:
        name = item["name"]
        if name not in earlier or same_json(earlier[name].get("schema"), item.get("schema")):
            continue
        if not same_json(written[name].get("schema"), item.get("schema")):
            return False
        item["schema"] = earlier[name]["schema"]
    return True
