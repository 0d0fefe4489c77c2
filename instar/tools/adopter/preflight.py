"""Plan of a move: what it will do, how long writes will be refused, and what prevents it.

``cli/commands/adopt`` calls it before every move, and alone with ``--plan``. It writes nothing
but dry runs.
"""

from __future__ import annotations

import time
from dataclasses import field
from typing import Any

from instar.base.errors import ApiError
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.tools.adopter.api_services import RoutedTo
from instar.tools.adopter.move import IN_FLIGHT_SECONDS, GroupMove
from instar.tools.adopter.moved_group import MovedCrd, key_of
from instar.wire.client.client import Client

_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_DEFAULT_TIMEOUT = 10
_POLICY_SECONDS, _ROUTE_SECONDS = 0.6, 0.8


@dataclass
class MovePlan:
    """Plan of a move, as ``--plan`` shows it."""

    group: str
    back: bool
    objects: dict[str, int] = field(default_factory=dict)
    """By CRD."""
    routes: dict[str, str] = field(default_factory=dict)
    since: Object = field(default_factory=dict)
    """What changed in instar since the group was adopted."""
    freeze_seconds: float = 0.0
    api_servers: list[str] = field(default_factory=list)
    obstacles: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing prevents the move."""
        return not self.obstacles

    def to_json(self) -> Object:
        return {name: getattr(self, name) for name in _FIELDS}

    def lines(self) -> list[str]:
        """Return the plan as the lines that ``--plan`` prints."""
        where = "back to the main cluster" if self.back else "to instar"
        total = counted(sum(self.objects.values()), "object")
        out = [f"{self.group} {where}: {total} of {counted(len(self.objects), 'CRD')}"]
        out += [f"  {name}: {counted(count, 'object')}" for name, count in self.objects.items()]
        out += [f"  {version} is served by {where}" for version, where in self.routes.items()]
        out.append(f"  API servers asked: {', '.join(self.api_servers)}")
        if self.since:
            out.append(f"  since the adoption: {_since(self.since)}")
        out.append(f"  writes will be refused for about {self.freeze_seconds:.1f} s; reads never")
        out += [f"  note: {text}" for text in self.warnings]
        out += [f"  in the way: {text}" for text in self.obstacles]
        return out


_FIELDS = (
    "group",
    "back",
    "objects",
    "routes",
    "since",
    "freeze_seconds",
    "api_servers",
    "obstacles",
    "warnings",
)


async def look(move: GroupMove, *, back: bool) -> MovePlan:
    """Return the plan of a move in one direction, with everything that prevents it."""
    plan = MovePlan(move.group.name, back)
    plan.api_servers = [replica.access.server for replica in move.cluster.replicas]
    for crd in move.group.crds:
        _judge_crd(plan, crd)
    await _judge_routes(move, plan)
    if not plan.ok:
        return plan
    await _judge_server(move, plan)
    began = time.monotonic()
    for crd in move.group.crds:
        await _read_everywhere(move.cluster.client, plan, crd)
    listing = time.monotonic() - began
    await _judge_freeze(move, plan)
    plan.freeze_seconds = _POLICY_SECONDS + move.in_flight + 2 * listing + _ROUTE_SECONDS
    return plan


def _judge_crd(plan: MovePlan, crd: MovedCrd) -> None:
    if crd.deleting:
        plan.obstacles.append(f"{crd.name} is being deleted: its objects are being removed")
    elif not crd.served:
        plan.obstacles.append(f"{crd.name} serves no version: its objects cannot be read")
    elif not crd.established:
        plan.obstacles.append(f"{crd.name} is not established")


async def _judge_routes(move: GroupMove, plan: MovePlan) -> None:
    routes = await move.cluster.routes(move.group, move.route)
    plan.routes = {version: routed.value for version, routed in routes.items()}
    plan.obstacles += [
        f"the APIService {version}.{plan.group} belongs to another server"
        for version, routed in routes.items()
        if routed is RoutedTo.OTHER
    ]
    mixed = len(set(routes.values())) > 1
    if mixed and not await move.cluster.is_frozen(plan.group):
        plan.obstacles.append(
            "some versions are served by instar and some by the main cluster, and writes go to "
            "both: route all of them alike first"
        )


async def _judge_server(move: GroupMove, plan: MovePlan) -> None:
    """Compare the CRDs that instar serves with those of the main cluster."""
    document = await move.adoption.document()
    served = {each["name"]: each for each in document["resources"]}
    for crd in move.group.crds:
        found = served.get(crd.name)
        if found is None:
            plan.obstacles.append(f"instar does not serve {crd.name}")
        elif (found["versions"], found["storage"]) != (sorted(crd.served), crd.stored):
            plan.obstacles.append(f"instar serves other versions of {crd.name}")
    if plan.back:
        plan.since = document["since"]
        plan.objects = {name: each["objects"] for name, each in served.items()}
        routed = RoutedTo.INSTAR.value in plan.routes.values()
        if routed and document["state"] != "adopted" and not move.options.discard:
            plan.obstacles.append(
                f"instar did not adopt {plan.group} (its state is {document['state']}): if it runs "
                "on another store than before, start it on the right one; --discard moves back "
                "what it has, and deletes every other object of the group in the cluster"
            )
        if document["onlyHere"] and not move.options.etcd:
            plan.obstacles.append(
                "the objects were removed from etcd (--free-etcd): give --etcd, by which they are "
                "written there again"
            )
        created = sum(plan.since["created"].values())
        if created and not (move.options.etcd or move.options.accept_new_uids):
            plan.obstacles.append(
                f"{counted(created, 'object')} created in instar cannot keep uid and "
                "creationTimestamp through the API: give --etcd, or --accept-new-uids to have them "
                "created anew, with owner references rewritten"
            )
        return
    there = sum(int(each["objects"]) for each in served.values())
    state = document["state"]
    if there and state in ("none", "adopted") and not move.options.discard:
        routed = RoutedTo.INSTAR.value in plan.routes.values()
        if not routed:
            plan.obstacles.append(
                f"instar has {counted(there, 'object')} of the group that the main cluster does "
                "not have: bring them back with --return, or replace them with --discard"
            )


async def _read_everywhere(client: Client, plan: MovePlan, crd: MovedCrd) -> None:
    """Read one object at every version, which fails where a conversion webhook is dead, and all
    metadata, which the freeze will wait for."""
    for version in crd.served:
        try:
            await client.list(crd.path(version), limit=1)
        except ApiError as error:
            plan.obstacles.append(f"{crd.name} cannot be read at {version}: {error.message}")
            return
    if plan.back:
        return
    count, first = 0, ""
    async for page in client.metadata_pages(crd.path(crd.read_version)):
        items = page.get("items") or []
        count += len(items)
        first = first or (key_of(items[0]) if items else "")
    plan.objects[crd.name] = count
    if first:
        await _try_write(client, plan, crd, first)


async def _try_write(client: Client, plan: MovePlan, crd: MovedCrd, key: str) -> None:
    """Dry-run a write that changes nothing, to find webhooks that fail."""
    try:
        await client.patch(crd.path(crd.read_version, key), {}, dryRun="All")
    except ApiError as error:
        plan.warnings.append(f"{crd.name}: a write without a change fails: {error.message}")


async def _judge_freeze(move: GroupMove, plan: MovePlan) -> None:
    if not await move.cluster.is_frozen(plan.group):
        why = await move.cluster.can_prove_freeze(plan.group)
        if why:
            plan.obstacles.append(f"the freeze cannot be proven: {why}")
    page = await move.cluster.client.list(_WEBHOOKS)
    longest, name = 0.0, ""
    for configuration in page.get("items") or ():
        for webhook in configuration.get("webhooks") or ():
            seconds = float(webhook.get("timeoutSeconds") or _DEFAULT_TIMEOUT)
            if seconds > longest and _matches(webhook, plan.group):
                longest, name = seconds, str(webhook["name"])
    if move.options.in_flight is not None:
        move.in_flight = move.options.in_flight
    else:
        move.in_flight = max(IN_FLIGHT_SECONDS, longest)
    if longest > move.in_flight:
        plan.warnings.append(
            f"the webhook {name} may hold a write for {longest:g} s; one that it holds for more "
            f"than {move.in_flight:g} s when the freeze begins would stay in etcd alone"
        )
    elif longest > IN_FLIGHT_SECONDS:
        plan.warnings.append(
            f"the freeze waits {longest:g} s for writes that the webhook {name} may hold; "
            "--in-flight shortens that"
        )


def _matches(webhook: Any, group: str) -> bool:
    groups = {each for rule in webhook.get("rules") or () for each in rule.get("apiGroups") or ()}
    return bool(groups & {group, "*"})


def _since(since: Object) -> str:
    parts = [
        f"{sum(since[what].values())} {what}" for what in ("created", "changed") if what in since
    ]
    return ", ".join([*parts, f"{since.get('deleted', 0)} deleted"])
