"""Makes instar's own API reachable through the main cluster, and has instar serve the CRDs.

``cli/commands/adopt`` calls it first; without ``changes`` it only looks.
"""

from __future__ import annotations

from typing import NamedTuple

from instar.kube.api.adoption import API_SERVICE
from instar.tools.adopter.adoption_client import AdoptionClient
from instar.tools.adopter.cluster import MovedCluster, within
from instar.tools.adopter.errors import AdoptError
from instar.tools.adopter.journal import MoveJournal
from instar.tools.adopter.move import GroupMove, MoveOptions, Tell
from instar.tools.migrator.retries import RetryPolicy


class MoveRequest(NamedTuple):
    """What the user asked for."""

    group: str
    service: tuple[str, str, int] | None = None
    """instar's Service: namespace, name, port."""
    ca_bundle: str = ""
    """Of its certificate, in base64."""
    changes: bool = True


async def prepare(
    cluster: MovedCluster,
    asked: MoveRequest,
    journal: MoveJournal,
    options: MoveOptions,
    tell: Tell,
) -> GroupMove:
    """Return the move. Raises ``AdoptError`` if instar cannot be asked."""
    group = await cluster.group(asked.group)
    if await cluster.adoption_service() is None:
        if asked.service is None or not asked.changes:
            raise AdoptError(
                f"the cluster has no APIService {API_SERVICE}, by which instar is asked: apply "
                "deploy/in-cluster/adopt.yaml, or give --instar-service and --ca-file, "
                "and it is made"
            )
        await cluster.make_adoption_service(asked.service, asked.ca_bundle)
    route = await cluster.await_adoption_service()
    adoption = AdoptionClient(cluster.client, asked.group, RetryPolicy(attempts=5))

    async def served() -> bool:
        names = {each["name"] for each in (await adoption.document())["resources"]}
        return names >= {crd.name for crd in group.crds}

    if asked.changes and not await served():
        for crd in group.crds:
            await cluster.served_label(crd)
        await within(served, f"instar does not serve the CRDs of {asked.group}")
    return GroupMove(cluster, group, adoption, route, journal, options, tell)
