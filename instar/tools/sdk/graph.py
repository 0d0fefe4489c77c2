"""Finds the shortest path of registered conversions between two versions. Pure.

``converter.py`` calls it once per pair of versions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

Pair = tuple[str, str]


def find_routes(versions: Sequence[str], steps: Iterable[Pair]) -> dict[Pair, tuple[Pair, ...]]:
    """Return the steps for every ordered pair that has a path; of equal paths the first
    registered.
    """
    neighbours: dict[str, list[str]] = {version: [] for version in versions}
    for source, target in steps:
        neighbours[source].append(target)
    routes: dict[Pair, tuple[Pair, ...]] = {}
    for start in versions:
        for target, route in _from(start, neighbours).items():
            routes[start, target] = route
    return routes


def missing_pairs(versions: Sequence[str], routes: Mapping[Pair, object]) -> list[Pair]:
    return [
        (source, target)
        for source in versions
        for target in versions
        if source != target and (source, target) not in routes
    ]


def _from(start: str, neighbours: Mapping[str, Sequence[str]]) -> dict[str, tuple[Pair, ...]]:
    found: dict[str, tuple[Pair, ...]] = {start: ()}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for target in neighbours[here]:
            if target not in found:
                found[target] = (*found[here], (here, target))
                queue.append(target)
    return found
