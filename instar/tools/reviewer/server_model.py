"""What a server with this CRD does to an object: the verdict both sides of a witness rest on.

Objects go through the schema room's own pipeline, as they do on a server; this knows which
version of which CRD is asked, and nothing about findings.
"""

from __future__ import annotations

from instar.base.field_errors import FieldError
from instar.base.json_values import Object
from instar.kube.schema.metadata.embedded_resources import EmbeddedError
from instar.kube.schema.offline_requests import SimulatedResponse, create, update
from instar.kube.schema.rule_engine import RuleCompiler, no_rules
from instar.tools.reviewer.report import ObjectVerdict
from instar.tools.reviewer.reviewed_crd import Side

_NOT_SERVED = "404: the server could not find the requested resource"


class CrdSimulator:
    """One version of one CRD."""

    def __init__(self, side: Side, version: str, compile_rules: RuleCompiler | None = None) -> None:
        self.side, self.version = side, version
        found = side.crd.version(version)
        self.served = found is not None and found.served
        self.pipeline = side.pipeline(version, compile_rules or no_rules)

    @property
    def has_status(self) -> bool:
        return self.pipeline.has_status

    def create(self, obj: Object, *, must_be_served: bool = False) -> ObjectVerdict:
        """As if the object were created at this version; its argument is left alone."""
        if must_be_served and not self.served:
            return ObjectVerdict(False, (_NOT_SERVED,))
        return _verdict(create(self.pipeline, self._addressed(obj)))

    def update(self, before: Object, after: Object) -> ObjectVerdict:
        """As if the one were stored and then became the other; both are left alone."""
        return _verdict(update(self.pipeline, self._addressed(after), self._addressed(before)))

    def _addressed(self, obj: Object) -> Object:
        """Sent as what this side calls it: another name is another rule's finding."""
        return {**obj, "apiVersion": self.pipeline.api_version, "kind": self.pipeline.kind}


def _verdict(answer: SimulatedResponse) -> ObjectVerdict:
    errors: tuple[FieldError | str, ...] = tuple(answer.errors)
    if isinstance(answer.undecodable, EmbeddedError):
        errors = (answer.undecodable.error,)
    elif answer.undecodable is not None:
        errors = (str(answer.undecodable),)
    kept = answer.obj if answer.accepted else None
    return ObjectVerdict(answer.accepted, errors, tuple(answer.unknown), kept)
