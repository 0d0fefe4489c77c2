"""View: which fields a CRD's objects set and by which managers (``instar census --fields``).

Called by ``tools/console/api.py``.
"""

from __future__ import annotations

from instar.base.json_values import Object
from instar.tools.migrator.census.field_census import count_fields
from instar.tools.migrator.live_crd import read_live_crd
from instar.tools.migrator.versions.field_removal import deprecated, field_paths
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path

_COMMON_FIELDS = ("apiVersion", "kind", "metadata")
MOST_OBJECTS = 100_000
DEFAULT_OBJECTS = 20_000
SECONDS = 20.0
"""Time limit of the count."""


async def fields(client: Client, name: str, most: int) -> Object:
    """Count the fields of at most ``most`` objects. Raises ``ApiError``."""
    raw = await client.get(crd_path(name))
    live = read_live_crd(raw)
    counted = await count_fields(client, live, most=min(most, MOST_OBJECTS), seconds=SECONDS)
    tally = counted.tally
    texts = {item.path: item.text for item in deprecated(raw)}
    read = live.crd.version(counted.version)
    framed = field_paths((read.schema if read is not None else None) or {})
    known = {path for path in framed if not path.startswith(_COMMON_FIELDS)}
    return {
        "crd": name,
        "version": counted.version,
        "objects": tally.total,
        "complete": counted.complete,
        "fields": [
            {
                "path": use.path,
                "objects": use.objects,
                "inSchema": use.path in known,
                "managers": dict(use.managers),
                "since": use.since or None,
                "values": None if use.many else dict(use.values),
                "deprecated": texts.get(use.path),
            }
            for use in sorted(tally.fields.values(), key=lambda use: use.path)
        ],
        "never": sorted(known - tally.fields.keys()),
    }
