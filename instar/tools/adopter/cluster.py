"""Access to the main cluster during a move: CRDs, APIServices, the freeze policy, API servers.

``adopt.py`` and ``return_group.py`` call it. Writes are idempotent; the client does not retry what
the cluster refuses.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from instar.base.errors import AlreadyExists, ApiError, Conflict, NotFound
from instar.base.json_values import Object
from instar.kube.api.adoption import API_SERVICE, SERVED_BY, SERVED_BY_INSTAR
from instar.tools.adopter.api_services import (
    AUTOMANAGED,
    PATH,
    RoutedTo,
    adoption_service,
    is_available,
    routed_to,
    routing_patch,
)
from instar.tools.adopter.errors import AdoptError
from instar.tools.adopter.freeze_policy import (
    BINDINGS,
    CANARY_NAMESPACE,
    POLICIES,
    binding,
    canary,
    policy,
    policy_name,
)
from instar.tools.adopter.moved_group import MovedCrd, MovedGroup, read_group
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path, resource_path

_POLL = 0.03
_WITHIN = 30.0
_TOUCH = "instar-adopt"
"""A category that a CRD gets and loses again: a changed CRD ends the watches of its objects."""


class MovedCluster:
    """The main cluster during a move: ``client`` for its state, ``replicas`` for each API
    server."""

    def __init__(self, client: Client, replicas: Sequence[Client]) -> None:
        self.client, self.replicas = client, tuple(replicas)

    async def group(self, name: str) -> MovedGroup:
        """Return the group with its CRDs. Raises ``AdoptError`` if it has none."""
        crds: list[Object] = []
        async for page in self.client.pages(crd_path(), limit=100):
            crds += page.get("items") or []
        return read_group(name, crds)

    async def revision(self, crd: MovedCrd) -> int:
        """Return the resourceVersion of a list now."""
        page = await self.client.list(crd.path(crd.read_version), limit=1)
        return int(page["metadata"]["resourceVersion"])

    async def main_revision(self) -> int:
        """Return the main cluster's resourceVersion now, wherever the group is served."""
        page = await self.client.list("/api/v1/namespaces", limit=1)
        return int(page["metadata"]["resourceVersion"])

    # -- APIServices

    async def api_service(self, version: str, group: str) -> Object | None:
        """Return the APIService of a version of the group; None if there is none."""
        return await self._found(f"{PATH}/{version}.{group}")

    async def adoption_service(self) -> Object | None:
        """Return the APIService of instar's adoption API; None if there is none."""
        return await self._found(f"{PATH}/{API_SERVICE}")

    async def make_adoption_service(self, place: tuple[str, str, int], ca_bundle: str) -> None:
        """Create the APIService of instar's adoption API for a Service (namespace, name, port), or
        correct it."""
        body = adoption_service(*place, ca_bundle)
        try:
            await self.client.post(PATH, body)
        except AlreadyExists:
            await self.client.patch(f"{PATH}/{API_SERVICE}", {"spec": body["spec"]})

    async def await_adoption_service(self) -> Object:
        """Return the APIService of the adoption API once it is available."""

        async def available() -> bool:
            found = await self.adoption_service()
            return found is not None and is_available(found)

        await within(available, f"the APIService {API_SERVICE} does not become available")
        found = await self.adoption_service()
        assert found is not None
        return found

    async def routes(self, group: MovedGroup, adoption: Object) -> dict[str, RoutedTo]:
        """Return for each version which server its APIService names."""
        return {
            version: routed_to(await self.api_service(version, group.name), adoption)
            for version in group.versions
        }

    async def route_to_instar(self, group: MovedGroup, version: str, adoption: Object) -> None:
        """Patch the APIService of a version, so that API servers proxy it to instar."""
        path = f"{PATH}/{version}.{group.name}"
        await self.client.patch(path, routing_patch(adoption))

    async def route_to_main(self, group: MovedGroup, version: str) -> None:
        """Delete the APIService: the main cluster makes its own again. A patch would leave its
        discovery with what instar serves."""
        path = f"{PATH}/{version}.{group.name}"
        found = await self._found(path)
        if found is None or AUTOMANAGED in (found["metadata"].get("labels") or {}):
            return
        try:
            await self.client.delete(path, {"preconditions": {"uid": found["metadata"]["uid"]}})
        except (NotFound, Conflict):
            return

    async def await_routes(self, group: MovedGroup, *, instar: bool) -> None:
        """Wait until every API server answers for every version itself, or by instar."""
        for version in group.versions:
            path = f"/apis/{group.name}/{version}"
            for replica in self.replicas:
                where = "instar" if instar else "itself"
                why = f"{replica.access.server} does not answer {path} by {where}"
                await within(partial(_answers, replica, path, instar), why)

    # -- freezing

    async def is_frozen(self, group: str) -> bool:
        """Return whether the policy that refuses writes is bound."""
        return await self._found(f"{BINDINGS}/{policy_name(group)}") is not None

    async def freeze(self, group: str, writer: str = "", manager: str = "") -> None:
        """Apply policy and binding, with an exemption if ``writer`` is given."""
        body = policy(group, writer, manager)
        try:
            await self.client.post(POLICIES, body)
        except AlreadyExists:
            path = f"{POLICIES}/{policy_name(group)}"
            await self.client.patch(path, {"spec": {"validations": body["spec"]["validations"]}})
        try:
            await self.client.post(BINDINGS, binding(group))
        except AlreadyExists:
            return

    async def unfreeze(self, group: str) -> None:
        """Delete the binding and the policy that refuse writes."""
        for kind in (BINDINGS, POLICIES):
            try:
                await self.client.delete(f"{kind}/{policy_name(group)}")
            except NotFound:
                continue

    async def await_frozen(self) -> None:
        """Wait until every API server refuses the canary."""
        for replica in self.replicas:
            why = f"{replica.access.server} does not enforce the policy"
            await within(partial(_refuses_canary, replica), why)

    async def can_prove_freeze(self) -> str:
        """Return why an API server cannot be asked for the canary; empty if all can."""
        for replica in self.replicas:
            try:
                if await _refuses_canary(replica):
                    return f"{replica.access.server} refuses the canary ConfigMap already"
            except ApiError as error:
                return f"{replica.access.server}: {error.message}"
        return ""

    # -- CRDs

    async def end_watches(self, crd: MovedCrd) -> None:
        """Change the CRD and change it back, which ends every watch of its objects."""
        for wanted in (True, False):
            await self._put_category(crd, wanted=wanted)

    async def _put_category(self, crd: MovedCrd, *, wanted: bool) -> None:
        while True:
            live = await self.client.get(crd_path(crd.name))
            names = live["spec"]["names"]
            kept = [each for each in names.get("categories") or () if each != _TOUCH]
            names["categories"] = [*kept, _TOUCH] if wanted else kept
            try:
                await self.client.put(crd_path(crd.name), live)
            except Conflict:
                continue
            return

    async def served_label(self, crd: MovedCrd) -> None:
        """Have instar serve the CRD, whatever its flag ``--groups`` names."""
        labels = {"metadata": {"labels": {"instar.dev/served": "true"}}}
        await self.client.patch(crd_path(crd.name), labels)

    async def _found(self, path: str) -> Object | None:
        try:
            return await self.client.get(path)
        except NotFound:
            return None


async def within(look: Callable[[], Awaitable[bool]], why: str, seconds: float = _WITHIN) -> None:
    """Look until it is true. Raises ``AdoptError`` with ``why`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if await look():
                return
            last = ""
        except ApiError as error:
            last = f": {error.message}"
        if time.monotonic() > deadline:
            raise AdoptError(f"{why} within {seconds:g} s{last}")
        await asyncio.sleep(_POLL)


async def _answers(replica: Client, path: str, instar: bool) -> bool:
    headers = await replica.response_headers(path)
    by = next((value for name, value in headers.items() if name.lower() == SERVED_BY.lower()), "")
    return (by == SERVED_BY_INSTAR) is instar


async def _refuses_canary(replica: Client) -> bool:
    path = resource_path("", "v1", "configmaps", namespace=CANARY_NAMESPACE)
    try:
        await replica.post(path, canary(), dryRun="All")
    except AlreadyExists:
        return False
    except ApiError as error:
        if error.code == _FORBIDDEN:
            return True
        raise
    return False


_FORBIDDEN = 403
