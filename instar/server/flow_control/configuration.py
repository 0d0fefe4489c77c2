"""The FlowSchemas and priority levels in force: read from the stored objects, and matched.

``flow_control.py`` asks ``Configuration.flow_of`` for each request. Results are remembered until an
object changes. As in kube-apiserver, ``exempt`` and ``catch-all`` exist even where no
object defines them, and a schema whose level is missing counts as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from instar.kube.access.attributes import ADMIN_GROUP, AUTHENTICATED, Attributes
from instar.kube.flow_control.priority_levels import (
    PriorityLevel,
    current_limits,
    seat_limits,
)
from instar.kube.flow_control.schemas import (
    BY_USER,
    CATCH_ALL,
    EXEMPT,
    FlowSchema,
    classify,
    in_matching_order,
)
from instar.server.flow_control.request_class import RequestClass
from instar.server.flow_control.seat_queues import SeatQueues

T = TypeVar("T", FlowSchema, PriorityLevel)
_MOST_REMEMBERED = 4096
"""Kinds of requests whose flow is remembered; at this number all are forgotten."""
_LONGEST_REMEMBERED = 512
"""Characters of a path that is remembered."""
_ANY_RESOURCE = {
    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True,
    "namespaces": ["*"],
}  # fmt: skip
_ANY_PATH = {"verbs": ["*"], "nonResourceURLs": ["*"]}


def _schema_for_groups(name: str, precedence: int, distinguisher: str, *groups: str) -> FlowSchema:
    rule = {
        "subjects": [{"kind": "Group", "group": {"name": group}} for group in groups],
        "resourceRules": [_ANY_RESOURCE],
        "nonResourceRules": [_ANY_PATH],
    }
    return FlowSchema(name, "", name, precedence, distinguisher, (rule,))


_MANDATORY_SCHEMAS = (
    _schema_for_groups(EXEMPT, 1, "", ADMIN_GROUP),
    _schema_for_groups(CATCH_ALL, 10000, BY_USER, "system:unauthenticated", AUTHENTICATED),
)
_MANDATORY_LEVELS = (
    PriorityLevel(EXEMPT, "", exempt=True, shares=0),
    PriorityLevel(CATCH_ALL, "", exempt=False, shares=5),
)


class Flow:
    """Requests that share a queue's hand: those of one user or namespace, by one schema."""

    __slots__ = ("begun", "kind", "name")

    def __init__(self, kind: RequestClass, name: str) -> None:
        self.kind, self.name = kind, name
        self.begun = 0
        """Seats that its requests were given in this turn of the event loop."""


class FlowObjects(Protocol):
    """The stored FlowSchemas and PriorityLevelConfigurations (``followed_objects.py``)."""

    def schemas(self) -> Sequence[FlowSchema]: ...

    def levels(self) -> Sequence[PriorityLevel]: ...

    def on_change(self, listener: Callable[[], None]) -> None: ...


class Configuration:
    """Schemas in matching order, the seats of their levels, and the flows of recent requests."""

    def __init__(self, objects: FlowObjects, seats: int) -> None:
        """``seats``: of the whole server."""
        self._objects = objects
        self._seats = seats
        self._schemas: list[FlowSchema] | None = None
        self._remembered: dict[tuple[object, ...], Flow] = {}
        self._flows: dict[tuple[str, str], Flow] = {}
        self.classes: dict[str, RequestClass] = {}
        """Classes of requests by the name of their schema."""
        self.levels: dict[str, SeatQueues] = {}
        self.retired: list[SeatQueues] = []
        """Levels that were deleted while requests held seats of them."""
        self.fair_fraction = 0.0
        self.targets: dict[str, float] = {}
        objects.on_change(self._forget)

    def flow_of(self, asked: Attributes) -> Flow:
        user = asked.user
        key = (
            user.name, user.groups, asked.verb, asked.group, asked.resource, asked.subresource,
            asked.namespace or asked.path,
        )  # fmt: skip
        found = self._remembered.get(key)
        return found if found is not None else self._found(key, asked)

    def _found(self, key: tuple[object, ...], asked: Attributes) -> Flow:
        if self._schemas is None:
            self._read()
        schema = classify(self._schemas or (), asked)
        name = schema.flow_of(asked)
        flow = self._flows.get((schema.name, name))
        if len(self._remembered) >= _MOST_REMEMBERED or len(self._flows) >= _MOST_REMEMBERED:
            self._remembered.clear()
            self._flows.clear()
        if flow is None:
            flow = self._flows[schema.name, name] = Flow(self.classes[schema.name], name)
        if len(asked.path) <= _LONGEST_REMEMBERED:
            self._remembered[key] = flow
        return flow

    def _forget(self) -> None:
        """An object has changed: the next request reads the configuration again."""
        self._schemas = None
        self._remembered.clear()

    def refresh(self) -> None:
        """Take over changed objects now, as metrics and debug pages show the result."""
        if self._schemas is None:
            self._read()

    def _read(self) -> None:
        levels = _with_mandatory(self._objects.levels(), _MANDATORY_LEVELS)
        self._set_levels(levels)
        known = _with_mandatory(self._objects.schemas(), _MANDATORY_SCHEMAS)
        self._schemas = in_matching_order(each for each in known if each.level in self.levels)
        self._flows.clear()
        before, self.classes = self.classes, {}
        for schema in self._schemas:
            seats, old = self.levels[schema.level], before.get(schema.name)
            if old is not None and old.schema == schema and old.seats is seats:
                old.update()
                self.classes[schema.name] = old
            else:
                self.classes[schema.name] = RequestClass(schema, seats)

    def _set_levels(self, levels: Sequence[PriorityLevel]) -> None:
        limits = seat_limits(levels, self._seats)
        before, self.levels = self.levels, {}
        for level in levels:
            found, wanted = before.pop(level.name, None), limits[level.name]
            if found is None:
                lendable = wanted.nominal - wanted.least
                found = SeatQueues(level, wanted, wanted.nominal - lendable // 2)
            else:
                found.reconfigure(level, wanted)
            self.levels[level.name] = found
        self.retired = [each for each in (*self.retired, *before.values()) if not each.idle]
        self.adjust()

    def adjust(self) -> None:
        """Lend seats between levels by what they needed since the last call."""
        levels = [each.level for each in self.levels.values()]
        limits = {name: each.limits for name, each in self.levels.items()}
        demands = {name: each.close_period() for name, each in self.levels.items()}
        found = current_limits(levels, limits, demands)
        self.fair_fraction, self.targets = found.fair_fraction, dict(found.targets)
        for name, each in self.levels.items():
            each.seats = found.seats[name]


def _with_mandatory(stored: Iterable[T], mandatory: Iterable[T]) -> list[T]:
    found = {each.name: each for each in mandatory}
    found.update({each.name: each for each in stored})
    return list(found.values())
