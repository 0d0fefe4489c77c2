"""What a server with this CRD does to an object: the verdict both sides of a witness rest on.

The order of work is the write path's: prune, drop nulls, embedded resources, default, then
every check. Runs the same compiled schemas the server runs; knows nothing about findings.
"""

from __future__ import annotations

from typing import Any

from instar.fields import FieldError, invalid
from instar.plain import Object, copy_json
from instar.reviewer.report import Verdict
from instar.reviewer.side import Side
from instar.schema.embedded import EmbeddedError
from instar.schema.metatypes import MetaError
from instar.schema.rules import Program, RuleCompiler
from instar.schema.values import ABSENT

_MOST_REPLICAS = 2**31 - 1
_NOT_SERVED = "404: the server could not find the requested resource"


class Judge:
    """One version of one CRD."""

    def __init__(self, side: Side, version: str, compile_rules: RuleCompiler | None = None) -> None:
        self.side, self.version = side, version
        found = side.crd.version(version)
        self.served = found is not None and found.served
        self.has_status = found is not None and found.has_status
        self._scale = None if found is None else found.scale
        self.compiled = side.compiled(version)
        self._compile_rules = compile_rules
        self._program: Program | None = None
        self._ready = False

    @property
    def program(self) -> Program | None:
        """CEL rules, compiled at the first need; a rule that does not compile is no rule."""
        if not self._ready:
            self._ready = True
            if self._compile_rules is not None:
                try:
                    self._program = self._compile_rules(self.compiled.structural)
                except ValueError:
                    self._program = None
        return self._program

    def create(self, obj: Object, *, must_be_served: bool = False) -> Verdict:
        """As if the object were created at this version; its argument is left alone.

        With a status subresource that takes two requests: creation ignores the status, which is
        then written to ``/status``. Both have to be accepted.
        """
        if must_be_served and not self.served:
            return Verdict(False, (_NOT_SERVED,))
        if self.has_status and "status" in obj:
            alone = self.create({name: obj[name] for name in obj if name != "status"})
            if not alone.accepted:
                return alone
        prepared = copy_json(obj)
        try:
            pruned = self.prepare(prepared)
        except EmbeddedError as error:
            return Verdict(False, (error.error,))
        except MetaError as error:
            return Verdict(False, (str(error),))
        errors = self.errors(prepared)
        return Verdict(not errors, tuple(errors), tuple(pruned), None if errors else prepared)

    def prepare(self, obj: Object, *, lenient: bool = False) -> list[str]:
        """Prune and default in place; answers the pruned paths."""
        pruned = self.compiled.prune_reporting(obj)
        self.compiled.drop_nulls(obj)
        pruned += self.compiled.coerce_embedded(obj, lenient=lenient)
        self.compiled.default(obj)
        return pruned

    def errors(self, obj: Object, old: Any = ABSENT) -> list[FieldError]:
        """Every check of a write; ``old`` is the object before an update."""
        found = [
            *self.compiled.validate(obj, old),
            *self.compiled.embedded_errors(obj),
            *self.compiled.list_type_errors(obj, old),
            *self._scale_errors(obj),
        ]
        if found or self.program is None:
            return found
        return self.program.evaluate(obj, None if old is ABSENT else old).errors

    def _scale_errors(self, obj: Object) -> list[FieldError]:
        """The counts behind ``/scale`` are judged on every write."""
        if self._scale is None:
            return []
        found = []
        for path in (self._scale.spec_replicas, self._scale.status_replicas):
            value: Any = obj
            for name in path.strip(".").split("."):
                value = value.get(name) if isinstance(value, dict) else None
            if isinstance(value, int) and value < 0:
                found.append(invalid(path, value, "should be a non-negative integer"))
            elif isinstance(value, int) and value > _MOST_REPLICAS:
                text = f"should be less than or equal to {_MOST_REPLICAS}"
                found.append(invalid(path, value, text))
        return found
