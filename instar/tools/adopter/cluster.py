"""Access to the main cluster during a move: CRDs, APIServices, the freeze policy, API servers.

``adopt.py`` and ``return_group.py`` call it. Writes are idempotent; the client does not retry what
the cluster refuses.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from instar.base.errors import AlreadyExists, ApiError, Conflict, NotFound, ServiceUnavailable
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
    version_service,
    why_unavailable,
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
from instar.tools.adopter.protection_policy import (
    protection,
    protection_binding,
    protection_name,
)
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path, resource_path

_POLL = 0.03
_WITHIN = 30.0
_ADMITS_WITHIN = 5.0
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

        found: Object = {}

        async def available() -> bool:
            nonlocal found
            found = await self.adoption_service() or {}
            return is_available(found)

        try:
            await within(available, f"the APIService {API_SERVICE} does not become available")
        except AdoptError as error:
            raise AdoptError(f"{error}: {why_unavailable(found)}") from None
        return found

    async def routes(self, group: MovedGroup, adoption: Object) -> dict[str, RoutedTo]:
        """Return for each version which server its APIService names: versions that a CRD serves,
        and others that are routed to instar."""
        found: dict[str, Object] = {}
        async for page in self.client.pages(PATH):
            for item in page.get("items") or ():
                if item["spec"].get("group") == group.name:
                    found[item["spec"]["version"]] = item
        routes = {version: routed_to(each, adoption) for version, each in found.items()}
        return {
            version: routes.get(version, RoutedTo.MAIN)
            for version in sorted({*group.versions, *routes})
            if version in group.versions or routes[version] is RoutedTo.INSTAR
        }

    async def route_to_instar(self, group: MovedGroup, version: str, adoption: Object) -> None:
        """Patch the APIService of a version, or make it, so that API servers proxy it to instar."""
        path = f"{PATH}/{version}.{group.name}"
        try:
            await self.client.patch(path, routing_patch(adoption))
        except NotFound:
            await self.client.post(PATH, version_service(group.name, version, adoption))

    async def route_to_main(self, group: MovedGroup, version: str) -> None:
        """Delete the APIService: the main cluster makes its own again. A patch would leave its
        discovery with what instar serves."""
        path = f"{PATH}/{version}.{group.name}"
        found = await self._found(path)
        if found is None or AUTOMANAGED in (found["metadata"].get("labels") or {}):
            return
        body = {"preconditions": {"uid": found["metadata"]["uid"]}}

        async def deleted() -> bool:
            try:
                await self.client.delete(path, body)
            except (NotFound, Conflict):
                return True
            return True

        # The API server may still enforce the protection that was just removed.
        await within(deleted, f"the APIService {version}.{group.name} cannot be deleted")

    async def await_routes(self, group: MovedGroup, *, instar: bool) -> None:
        """Wait until every API server answers for every version itself, or by instar."""
        for version in group.versions:
            path = f"/apis/{group.name}/{version}"
            for replica in self.replicas:
                where = "instar" if instar else "itself"
                why = f"{replica.access.server} does not answer {path} by {where}"
                await within(partial(_answers, replica, path, instar), why)

    async def await_proxied(self, group: MovedGroup, version: str) -> None:
        """Wait until every API server proxies a version, which no CRD has to serve yet."""
        path = f"/apis/{group.name}/{version}"
        for replica in self.replicas:
            why = f"{replica.access.server} does not proxy {path}"
            await within(partial(_proxies, replica, path), why)

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
        await self._make(BINDINGS, binding(group))

    async def unfreeze(self, group: str) -> None:
        """Delete the binding and the policy that refuse writes."""
        await self._delete_policy(policy_name(group))

    async def protect(self, group: str, versions: Iterable[str]) -> None:
        """Have the cluster refuse to delete CRDs and APIServices of an adopted group, and to serve
        other versions than these."""
        body = protection(group, versions)
        try:
            await self.client.post(POLICIES, body)
        except AlreadyExists:
            await self.client.patch(f"{POLICIES}/{protection_name(group)}", {"spec": body["spec"]})
        await self._make(BINDINGS, protection_binding(group))

    async def unprotect(self, group: str) -> None:
        """Let CRDs and APIServices of the group be deleted again."""
        await self._delete_policy(protection_name(group))

    async def _make(self, path: str, body: Object) -> None:
        try:
            await self.client.post(path, body)
        except AlreadyExists:
            return

    async def _delete_policy(self, name: str) -> None:
        for kind in (BINDINGS, POLICIES):
            try:
                await self.client.delete(f"{kind}/{name}")
            except NotFound:
                continue

    async def await_frozen(self, group: str) -> None:
        """Wait until every API server refuses the canary."""
        for replica in self.replicas:
            why = f"{replica.access.server} does not enforce the policy"
            await within(partial(_refuses_canary, replica, group), why)

    async def can_prove_freeze(self, group: str) -> str:
        """Return why an API server cannot be asked for the canary; empty if all can. One may
        refuse it for a second after an earlier freeze."""
        for replica in self.replicas:

            async def admits(replica: Client = replica) -> bool:
                return not await _refuses_canary(replica, group)

            try:
                why = f"{replica.access.server} does not admit the canary ConfigMap"
                await within(admits, why, _ADMITS_WITHIN)
            except AdoptError as error:
                return str(error)
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


async def _proxies(replica: Client, path: str) -> bool:
    """Return whether an API server does not answer by itself: by itself it answers 404, and 503
    while the server that it asks does not serve the version."""
    try:
        return await _answers(replica, path, True)
    except ServiceUnavailable:
        return True
    except NotFound:
        return False


async def _refuses_canary(replica: Client, group: str) -> bool:
    path = resource_path("", "v1", "configmaps", namespace=CANARY_NAMESPACE)
    try:
        await replica.post(path, canary(group), dryRun="All")
    except AlreadyExists:
        return False
    except ApiError as error:
        if error.code == _FORBIDDEN:
            return True
        raise
    return False


_FORBIDDEN = 403
