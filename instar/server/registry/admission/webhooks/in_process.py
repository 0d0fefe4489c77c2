"""Configurations that nobody stored: webhooks that are functions of this process."""

from __future__ import annotations

from collections.abc import Callable

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object

Review = Callable[[str, Object], Object]
"""(a webhook's name, an AdmissionReview with its request) → one with its response."""


@dataclass(frozen=True, slots=True)
class LocalConfiguration:
    """A configuration nobody stored, whose webhooks are functions."""

    document: Object
    review: Review

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])
