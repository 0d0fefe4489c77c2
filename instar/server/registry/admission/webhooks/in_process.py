"""In-process webhook configurations: webhooks given as functions instead of stored objects.

Passed in through ``server/settings.py``; ``in_process_call.py`` calls the functions.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object

Review = Callable[[str, Object], Object]
"""(webhook name, AdmissionReview with request) → AdmissionReview with response."""


@dataclass(frozen=True, slots=True)
class LocalConfiguration:
    """A configuration of in-process functions."""

    document: Object
    review: Review

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])
