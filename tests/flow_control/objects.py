"""FlowSchemas and priority levels for tests, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from instar.kube.access.attributes import Attributes, User
from instar.kube.flow_control.priority_levels import PriorityLevel, priority_level_of
from instar.kube.flow_control.schemas import FlowSchema, flow_schema_of
from instar.kube.flow_control.work import ONE_SEAT, RequestWork
from instar.server.flow_control.configuration import Configuration
from instar.server.flow_control.flow_control import FlowControl
from instar.server.flow_control.seat_queues import FlowRejection, SeatRequest

ALL = ("system:authenticated",)


def asked(user: str = "ann", verb: str = "get", **other: Any) -> Attributes:
    other.setdefault("resource", "pods")
    return Attributes(User(user, other.pop("groups", ALL)), verb, **other)


def schema(name: str, level: str, precedence: int = 1000, **spec: Any) -> FlowSchema:
    rule = {
        "subjects": [{"kind": "Group", "group": {"name": "*"}}],
        "resourceRules": [
            {
                "verbs": ["*"],
                "apiGroups": ["*"],
                "resources": ["*"],
                "clusterScope": True,
                "namespaces": ["*"],
            }
        ],
    }
    document = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": [rule],
        **spec,
    }
    return flow_schema_of({"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": document})


def level(name: str, shares: int = 10, **limited: Any) -> PriorityLevel:
    queuing = limited.pop("queuing", None)
    response = {"type": "Queue", "queuing": queuing} if queuing else {"type": "Reject"}
    spec = {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": shares, "limitResponse": response, **limited},
    }
    return priority_level_of({"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec})


class GivenObjects:
    """Objects that a test sets."""

    def __init__(self, schemas: Sequence[FlowSchema], levels: Sequence[PriorityLevel]) -> None:
        self.given = schemas, levels
        self._listeners: list[Callable[[], None]] = []

    def schemas(self) -> Sequence[FlowSchema]:
        return self.given[0]

    def levels(self) -> Sequence[PriorityLevel]:
        return self.given[1]

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def replace(self, schemas: Sequence[FlowSchema], levels: Sequence[PriorityLevel]) -> None:
        self.given = schemas, levels
        for listener in self._listeners:
            listener()


QUEUING = {"queues": 16, "handSize": 4, "queueLengthLimit": 50}
BY_USER: dict[str, Any] = {"distinguisherMethod": {"type": "ByUser"}}


def one_level(
    seats: int, queuing: dict[str, int] | None = QUEUING, **control: Any
) -> tuple[FlowControl, GivenObjects]:
    """A server with ``seats`` for one level, which takes every request, by user."""
    objects = GivenObjects(
        [schema("all", "only", **BY_USER)], [level("only", 1_000_000, queuing=queuing)]
    )
    return FlowControl(Configuration(objects, seats), **control), objects


def enter(
    control: FlowControl, user: str = "ann", verb: str = "get"
) -> SeatRequest | FlowRejection:
    attributes = asked(user, verb)
    return control.enter(control.flow_of(attributes), attributes)


def seated(control: FlowControl, user: str = "ann", verb: str = "get") -> SeatRequest:
    found = enter(control, user, verb)
    assert isinstance(found, SeatRequest)
    return found


def estimate_of(work: RequestWork = ONE_SEAT) -> Callable[[Attributes, int, int], RequestWork]:
    return lambda *_: work


async def next_turn() -> None:
    """Let the queues be served."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
