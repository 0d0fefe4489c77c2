"""Event fan-out of a store: passes committed events to its subscribers, in revision order.

Every backend holds a ``Followers`` and publishes to it synchronously when a write is durable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from instar.base.supervision import report_failure
from instar.wire.storage.store import Ended, Event, Sink, StoreError


class Follower:
    """One subscription; it has received every event up to the revision ``reached``."""

    def __init__(self, owner: Followers, after: int, sink: Sink, ended: Ended) -> None:
        self._owner, self._sink, self._ended = owner, sink, ended
        self.reached = after
        self.closed = False

    def close(self) -> None:
        self.closed = True
        self._owner.drop(self)

    def take(self, events: Sequence[Event], revision: int) -> None:
        if self.closed or revision <= self.reached:
            return
        if events and events[0].revision <= self.reached:
            events = [event for event in events if event.revision > self.reached]
        self.reached = revision
        try:
            self._sink(events, revision)
        except Exception as error:
            # A failing subscriber must neither fail the writer nor delay the other subscribers.
            report_failure("watch-cache", error, f"revision {revision}")
            self.end(StoreError("the follower failed on an event"))

    def end(self, why: StoreError) -> None:
        if not self.closed:
            self.close()
            self._ended(why)


class Followers:
    """The subscriptions of one store."""

    def __init__(self) -> None:
        self._followers: dict[Follower, None] = {}

    def __bool__(self) -> bool:
        return bool(self._followers)

    def add(
        self, after: int, sink: Sink, ended: Ended, backlog: Iterable[Sequence[Event]]
    ) -> Follower:
        follower = Follower(self, after, sink, ended)
        self._followers[follower] = None
        for events in backlog:
            follower.take(events, events[-1].revision)
        return follower

    def drop(self, follower: Follower) -> None:
        self._followers.pop(follower, None)

    def publish(self, events: Sequence[Event], revision: int) -> None:
        for follower in tuple(self._followers):
            follower.take(events, revision)

    def end(self, why: StoreError) -> None:
        for follower in tuple(self._followers):
            follower.end(why)
