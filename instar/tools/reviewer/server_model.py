"""Simulates what an API server does to an object that is created or updated under a given CRD:
prune, default, validate.

``witnesses/search.py``, which looks for an object that proves a finding, runs every candidate
through the simulators of the old and the new CRD; ``witnesses/transitions.py`` and
``conversions.py`` call it too. The simulator calls ``kube/schema/pipeline.py``, as the server does.
"""

from __future__ import annotations

from instar.base.field_errors import FieldError
from instar.base.json_values import Object
from instar.kube.schema.metadata.embedded_resources import EmbeddedError
from instar.kube.schema.offline_requests import SimulatedResponse, create, update
from instar.kube.schema.rule_engine import RuleCompiler, no_rules
from instar.tools.reviewer.report import ObjectVerdict
from instar.tools.reviewer.reviewed_crd import ReviewedCrd

_NOT_SERVED = "404: the server could not find the requested resource"
"""The error for a version that is not served."""


class CrdSimulator:
    """Simulated server for one version of one CRD."""

    def __init__(
        self, side: ReviewedCrd, version: str, compile_rules: RuleCompiler | None = None
    ) -> None:
        self.side, self.version = side, version
        found = side.crd.version(version)
        self.served = found is not None and found.served
        self.pipeline = side.pipeline(version, compile_rules or no_rules)

    @property
    def has_status(self) -> bool:
        return self.pipeline.has_status

    def create(self, obj: Object, *, must_be_served: bool = False) -> ObjectVerdict:
        """Simulate a create at this version; the argument is not changed."""
        if must_be_served and not self.served:
            return ObjectVerdict(False, (_NOT_SERVED,))
        return _verdict(create(self.pipeline, self._addressed(obj)))

    def update(self, before: Object, after: Object) -> ObjectVerdict:
        """Simulate an update from one state to the other; the arguments are not changed."""
        return _verdict(update(self.pipeline, self._addressed(after), self._addressed(before)))

    def _addressed(self, obj: Object) -> Object:
        """Return the object with this CRD's group and kind; another rule reports changed names."""
        return {**obj, "apiVersion": self.pipeline.api_version, "kind": self.pipeline.kind}


def _verdict(answer: SimulatedResponse) -> ObjectVerdict:
    errors: tuple[FieldError | str, ...] = tuple(answer.errors)
    if isinstance(answer.undecodable, EmbeddedError):
        errors = (answer.undecodable.error,)
    elif answer.undecodable is not None:
        errors = (str(answer.undecodable),)
    kept = answer.obj if answer.accepted else None
    return ObjectVerdict(answer.accepted, errors, tuple(answer.unknown), kept)
