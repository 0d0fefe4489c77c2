"""Estimates the work of a request from the objects and watches of its resource.

``lifecycle/composition.py`` gives it to ``flow_control.py``; the arithmetic is in
``kube/flow_control/work.py``.
"""

from __future__ import annotations

from itertools import islice

from instar.kube.access.attributes import Attributes
from instar.kube.flow_control.work import ONE_SEAT, RequestWork, list_work, write_work
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.resource import Resource

_WRITES = ("create", "update", "patch", "delete")
_SAMPLE = 8
"""Objects of which the average size is taken."""


class WorkEstimate:
    """Called with the attributes of a request, its ``limit`` and the most seats it may take."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __call__(self, asked: Attributes, limit: int, widest: int) -> RequestWork:
        if not asked.resource or (asked.name and asked.verb not in _WRITES):
            return ONE_SEAT
        if asked.verb in ("list", "watch"):
            found = self._catalog.find(asked.group, asked.resource)
            return ONE_SEAT if found is None else _of_list(found, limit, widest)
        if asked.verb not in _WRITES or asked.subresource == "token":
            return ONE_SEAT
        found = self._catalog.find(asked.group, asked.resource)
        return ONE_SEAT if found is None else write_work(found.hub.watching, widest)


def _of_list(resource: Resource, limit: int, widest: int) -> RequestWork:
    entries = resource.objects.entries
    sample = [entry.size for entry in islice(entries.values(), _SAMPLE)]
    average = sum(sample) / len(sample) if sample else 0.0
    return list_work(len(entries), average, limit, widest)
