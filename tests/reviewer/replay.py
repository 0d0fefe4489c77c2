"""Witnesses, checked a second time and by other means than the reviewer's own judge."""

from __future__ import annotations

from copy import deepcopy

from instar.base.json_values import Object
from instar.kube.crds.documents import read_definition
from instar.kube.schema.cel_rules.evaluate import compile_rules
from instar.kube.schema.compiled import CompiledSchema, compile_schema
from instar.tools.reviewer.report import Effect, Finding, Witness


class ReviewedCrd:
    """One CRD, compiled from its raw form."""

    def __init__(self, crd: Object) -> None:
        self.crd = read_definition(crd).crd

    def served(self, version: str) -> bool:
        found = self.crd.version(version)
        return found is not None and found.served

    def compiled(self, version: str) -> CompiledSchema:
        found = self.crd.version(version)
        return compile_schema(
            None if found is None else found.schema, preserve_unknown=self.crd.preserve_unknown
        )

    def write(
        self,
        obj: Object,
        version: str,
        before: Object | None = None,
        *,
        through_status: bool = True,
    ) -> tuple[list[str], Object]:
        """Errors of a write, and the object as it would be kept."""
        schema = self.compiled(version)
        kept, past = deepcopy(obj), deepcopy(before)
        if not through_status and getattr(self.crd.version(version), "has_status", False):
            kept.pop("status", None)
        for item in (kept, past):
            if item is not None:
                schema.prune(item)
                schema.drop_nulls(item)
                schema.coerce_embedded(item, lenient=True)
                schema.default(item)
        old = () if past is None else (past,)
        errors = [
            *schema.validate(kept, *old),
            *schema.embedded_errors(kept),
            *schema.list_type_errors(kept, *old),
        ]
        program = compile_rules(schema.structural)
        if program is not None and not errors:
            errors = program.evaluate(kept, past).errors
        return [str(error) for error in errors], kept


def assert_real(finding: Finding, old: Object, new: Object) -> None:
    """The witness does under both CRDs what the finding says it does."""
    witness = finding.witness
    assert witness is not None
    sides = ReviewedCrd(old), ReviewedCrd(new)
    if witness.new_version:
        _assert_crossing(witness, sides[1])
        return
    if finding.rule in ("version-removed", "version-unserved"):
        assert sides[0].write(witness.object, witness.version)[0] == []
        assert not sides[1].served(witness.version)
        return
    (old_errors, before), (new_errors, after) = (
        side.write(
            witness.object,
            witness.version,
            witness.before,
            through_status=witness.through_status,
        )
        for side in sides
    )
    taking, other = (new_errors, old_errors), (old_errors, new_errors)
    accepted, refused = taking if witness.effect is Effect.ACCEPTED else other
    assert accepted == []
    if witness.effect is Effect.REFUSED:
        assert refused != []
    else:
        assert refused != [] or before != after


def _assert_crossing(witness: Witness, side: ReviewedCrd) -> None:
    errors, kept = side.write(witness.object, witness.version)
    assert errors == []
    sent = {**kept, "apiVersion": f"{side.crd.group}/{witness.new_version}"}
    errors, there = side.write(sent, witness.new_version)
    assert errors != [] or there != sent
