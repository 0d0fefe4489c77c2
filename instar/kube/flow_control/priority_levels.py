"""Priority levels: parsed from objects, their share of the server's seats, and how levels lend
seats to each other.

``server/flow_control`` computes ``seat_limits`` when the configuration changes, and
``current_limits`` every ten seconds from what the levels needed in that time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object

_MAX_SEATS_PART = 0.15
"""Part of a level's seats that one request may take."""
_DECAY = 0.977
"""Weight of the demand so far in the smoothed demand: its half-life is five minutes."""
_LEAST_TARGET = 0.001


@dataclass(frozen=True, slots=True)
class PriorityLevel:
    """A parsed PriorityLevelConfiguration."""

    name: str
    uid: str
    exempt: bool
    shares: int
    lendable_percent: int = 0
    borrowing_percent: int | None = None
    """Seats it may borrow, in percent of its own; None is any number."""
    queues: int = 0
    """0: a request that gets no seat is rejected at once."""
    hand_size: int = 1
    queue_length: int = 0


@dataclass(frozen=True, slots=True)
class SeatLimits:
    """Seats of one level: its own, how many it keeps, and how many it may have."""

    nominal: int
    least: int
    most: int
    widest: int
    """The most seats that one list or write may take; 0 is no limit of the level's."""


def priority_level_of(obj: Object) -> PriorityLevel:
    metadata, spec = obj["metadata"], obj["spec"]
    exempt = spec.get("type") == "Exempt"
    given = spec.get("exempt" if exempt else "limited") or {}
    queuing = (given.get("limitResponse") or {}).get("queuing") or {}
    return PriorityLevel(
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        exempt=exempt,
        shares=given.get("nominalConcurrencyShares") or 0,
        lendable_percent=given.get("lendablePercent") or 0,
        borrowing_percent=given.get("borrowingLimitPercent"),
        queues=queuing.get("queues") or 0,
        hand_size=queuing.get("handSize") or 1,
        queue_length=queuing.get("queueLengthLimit") or 0,
    )


def seat_limits(levels: Sequence[PriorityLevel], seats: int) -> dict[str, SeatLimits]:
    """Divide the server's seats among the levels, by their shares. Rounded up, so that the sum may
    be a little larger."""
    shares = sum(level.shares for level in levels) or 1
    return {level.name: _limits(level, seats, shares) for level in levels}


def _limits(level: PriorityLevel, seats: int, shares: int) -> SeatLimits:
    nominal = ceil(seats * level.shares / shares)
    lendable = _rounded(nominal * level.lendable_percent / 100)
    percent = level.borrowing_percent
    borrowed = seats if percent is None else _rounded(nominal * percent / 100)
    widest = 0
    if level.queues:
        widest = max(1, min(ceil(nominal * _MAX_SEATS_PART), nominal // level.hand_size))
    return SeatLimits(nominal, nominal - lendable, nominal + borrowed, widest)


@dataclass(slots=True)
class SeatDemand:
    """Seats that a level used or waited for, from one adjustment of its limit to the next."""

    highest: int = 0
    average: float = 0.0
    deviation: float = 0.0
    smoothed: float = 0.0

    def update(self, highest: int, samples: Sequence[int]) -> None:
        """Take over the demand of the last period: its highest value, and samples of it."""
        self.highest = highest
        if not samples:
            return
        self.average = sum(samples) / len(samples)
        variance = sum((sample - self.average) ** 2 for sample in samples) / len(samples)
        self.deviation = variance**0.5
        envelope = self.average + self.deviation
        self.smoothed = max(envelope, _DECAY * self.smoothed + (1 - _DECAY) * envelope)


@dataclass(frozen=True, slots=True)
class CurrentLimits:
    """Seats that each level may use now, by its name."""

    seats: Mapping[str, int]
    targets: Mapping[str, float]
    fair_fraction: float
    """How much of its target each level gets; 0 where there is nothing to divide."""


def current_limits(
    levels: Sequence[PriorityLevel],
    limits: Mapping[str, SeatLimits],
    demands: Mapping[str, SeatDemand],
) -> CurrentLimits:
    """Lend seats that levels do not need to levels that need more.

    A level keeps its least number of seats, and what it used in the last period up to its nominal
    number. Exempt levels take what they use; the others share the rest in proportion to their
    smoothed demand.
    """
    needed = {each.name: _needed(each, limits[each.name], demands[each.name]) for each in levels}
    limited = [level.name for level in levels if not level.exempt]
    exempt = {level.name: needed[level.name] for level in levels if level.exempt}
    total = sum(limits[level.name].nominal for level in levels)
    rest = total - sum(exempt.values())
    least = sum(limits[name].least for name in limited)
    most_needed = sum(needed[name] for name in limited)
    targets = {name: max(float(needed[name]), demands[name].smoothed) for name in limited}
    if rest <= least:
        seats, fraction = {name: limits[name].least for name in limited}, 0.0
    elif rest <= most_needed:
        part, fraction = (rest - least) / (most_needed - least), 0.0
        seats = {
            name: limits[name].least + _rounded((needed[name] - limits[name].least) * part)
            for name in limited
        }
    else:
        bounds = [(needed[name], limits[name].most, targets[name]) for name in limited]
        shares, fraction = divide(total, bounds)
        seats = {name: _rounded(share) for name, share in zip(limited, shares, strict=True)}
    return CurrentLimits({**exempt, **seats}, targets, fraction)


def _needed(level: PriorityLevel, limits: SeatLimits, demand: SeatDemand) -> int:
    used = demand.highest if level.exempt else min(limits.nominal, demand.highest)
    return max(limits.least, used)


def divide(total: int, bounds: Sequence[tuple[float, float, float]]) -> tuple[list[float], float]:
    """Divide a total in proportion to targets, within bounds of (least, most, target).

    Returns the parts and the fraction: each part is ``fraction * target``, or the bound that it
    would cross. The sum of the parts grows with the fraction, so the fraction lies between two
    neighbouring points at which a part reaches a bound.
    """
    targets = [max(target, _LEAST_TARGET) for _, _, target in bounds]

    def parts(fraction: float) -> list[float]:
        return [
            max(least, min(most, fraction * target))
            for (least, most, _), target in zip(bounds, targets, strict=True)
        ]

    points = sorted(
        {
            bound / target
            for (least, most, _), target in zip(bounds, targets, strict=True)
            for bound in (least, most)
        }
    )
    below, sum_below = 0.0, sum(parts(0.0))
    for point in points:
        sum_here = sum(parts(point))
        if sum_here >= total:
            slope = sum_here - sum_below
            part = (total - sum_below) / slope if slope else 0.0
            fraction = below + (point - below) * max(part, 0.0)
            return parts(fraction), fraction
        below, sum_below = point, sum_here
    return parts(below), below


def _rounded(number: float) -> int:
    """Round half away from zero, as Go does."""
    return int(number + 0.5)
