"""Owner references to objects whose uid changes on the way back.

While such an owner has no uid in the main cluster, its garbage collector would delete what it owns.
So ``return_group.py`` removes these references before the flip (the journal has them), and
``restore`` writes them with the new uid afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from instar.base.errors import ApiError, Conflict, NotFound
from instar.base.json_values import Object
from instar.tools.adopter.errors import AdoptError
from instar.wire.client.client import Client
from instar.wire.client.discovery import listable_resources


async def find(client: Client, uids: Collection[str], group: str) -> list[dict[str, Any]]:
    """Return objects of other groups that name one of ``uids`` as their owner: path and
    references. Raises ``AdoptError`` if a kind cannot be looked at."""
    discovered = await listable_resources(client)
    found: list[dict[str, Any]] = []
    for kind in discovered.types:
        if kind.group == group:
            continue
        try:
            async for page in client.metadata_pages(kind.path()):
                for item in page.get("items") or ():
                    metadata = item["metadata"]
                    references = metadata.get("ownerReferences") or []
                    if any(each["uid"] in uids for each in references):
                        path = kind.path(metadata.get("namespace") or "", metadata["name"])
                        found.append({"path": path, "references": references})
        except NotFound:
            continue
        except ApiError as error:
            raise AdoptError(
                f"{kind.name} cannot be searched for owner references: {error.message}"
            ) from error
    return found


async def detach(client: Client, dependents: list[dict[str, Any]], uids: Collection[str]) -> None:
    """Remove the references to ``uids`` from the dependents."""
    for each in dependents:
        kept = [ref for ref in each["references"] if ref["uid"] not in uids]
        await _write(client, each["path"], kept)


async def restore(
    client: Client, dependents: list[dict[str, Any]], renamed: Mapping[str, str]
) -> None:
    """Write the references of the dependents again, with the new uids."""
    for each in dependents:
        await _write(client, each["path"], rewritten(each["references"], renamed))


def rewritten(references: list[Object], renamed: Mapping[str, str]) -> list[Object]:
    """Return references with new uids."""
    return [{**each, "uid": renamed.get(each["uid"], each["uid"])} for each in references]


async def _write(client: Client, path: str, references: list[Object]) -> None:
    while True:
        try:
            await client.patch(path, {"metadata": {"ownerReferences": references or None}})
        except Conflict:
            continue
        except NotFound:
            return
        return
