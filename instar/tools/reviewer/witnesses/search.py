"""Searches for an object that proves a finding and confirms it with both CRDs.

``reviewing.py`` passes it to the engine, which calls it for each finding. The value at the changed
place comes from ``candidates.py``. The value is evidence for this finding only if one CRD's schema
treats the value differently after the changed keywords of the other CRD are copied into it; then
the simulated servers of both CRDs (``server_model.py``) check the whole object.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, copy_json, same_json
from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.metadata.types import MetaError
from instar.kube.schema.pipeline import take_in, value_errors
from instar.kube.schema.rule_engine import Program, RuleCompiler
from instar.kube.schema.structure.parse import structural
from instar.tools.reviewer.report import Effect, NoWitness, Witness
from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.rule_kit import Probe
from instar.tools.reviewer.rules.validations import uses_old
from instar.tools.reviewer.server_model import CrdSimulator
from instar.tools.reviewer.witnesses.candidates import UNKNOWN, candidates
from instar.tools.reviewer.witnesses.effects import effect_of, error_paths, paths_overlap, proves
from instar.tools.reviewer.witnesses.placing import concrete_path, node_at, tokens, whole_object
from instar.tools.reviewer.witnesses.repair import repair
from instar.tools.reviewer.witnesses.samples import Samples
from instar.tools.reviewer.witnesses.transitions import update_witness

_CEL = "x-kubernetes-validations"
_MOST_CANDIDATES = 400
_MOST_OBJECTS = 25
_FEWEST_OBJECTS = 6
"""Tried however long it takes, so that a slow machine finds what a quick one does."""
_PATIENCE = 0.12
"""Seconds for one finding; a schema on which that is too short is worth no more."""


@dataclass(frozen=True)
class _Judges:
    """The two simulated servers: ``base`` must accept the object, ``other`` must show the
    effect.
    """

    base: CrdSimulator
    other: CrdSimulator
    swapped: bool
    """The base is the new CRD: something was loosened."""


class Search:
    """The search for witnesses of one review, called by the engine. Caches compiled simulators."""

    def __init__(
        self,
        old: ReviewedCrd | None,
        new: ReviewedCrd,
        compile_rules: RuleCompiler | None = None,
        *,
        seconds: float = 1.2,
    ) -> None:
        self._old, self._new = old, new
        self._compile_rules = compile_rules
        self._samples, self._nodes = Samples(), _Nodes(compile_rules)
        self._found: dict[tuple[object, ...], Object] = {}
        self._judges: dict[tuple[int, str], CrdSimulator] = {}
        self._deadline = time.thread_time() + seconds

    def __call__(self, probe: Probe) -> Witness | NoWitness:
        if time.thread_time() > self._deadline:
            return NoWitness.NO_TIME
        if _CEL in probe.keywords and self._compile_rules is None:
            return NoWitness.NO_RULES
        judges = self._judges_of(probe)
        if judges is None:
            return NoWitness.NO_OLD_CRD
        if not probe.keywords and not probe.steps and probe.effect is Effect.REFUSED:
            return self._unserved(judges)
        if "subresources" in probe.keywords:
            return self._status_ignored(judges)
        if not (judges.base.served and (judges.other.served or probe.target)):
            return NoWitness.NOT_WRITABLE
        return self._search(probe, judges)

    def judge(self, side: ReviewedCrd, version: str) -> CrdSimulator:
        key = (id(side), version)
        if key not in self._judges:
            self._judges[key] = CrdSimulator(side, version, self._compile_rules)
        return self._judges[key]

    def _judges_of(self, probe: Probe) -> _Judges | None:
        if probe.target:
            base, other = (self.judge(self._new, name) for name in (probe.version, probe.target))
            return _Judges(base, other, swapped=False)
        if self._old is None:
            return None
        old, new = (self.judge(side, probe.version) for side in (self._old, self._new))
        swapped = probe.effect is Effect.ACCEPTED
        return _Judges(new, old, True) if swapped else _Judges(old, new, False)

    def _unserved(self, judges: _Judges) -> Witness | NoWitness:
        """Return the smallest object of a version that was removed."""
        for obj in self._objects(judges, (), ABSENT):
            verdict = judges.base.create(obj)
            if verdict.accepted:
                new = judges.other.create(obj, must_be_served=True)
                return Witness(Effect.REFUSED, judges.base.version, obj, verdict, new)
        return NoWitness.NO_OBJECT

    def _status_ignored(self, judges: _Judges) -> Witness | NoWitness:
        """Return an object with a status, which is dropped on create if ``/status`` is new."""
        steps = ("properties", "status")
        schema = judges.base.side.schemas.get(judges.base.version) or {}
        status = node_at(schema, steps)
        if status is None:
            return NoWitness.NO_STATUS
        for value in islice(candidates(self._samples, status, {}), 30):
            for obj in self._objects(judges, steps, value) if value else ():
                verdict = judges.base.create(obj)
                without = judges.other.create({key: obj[key] for key in obj if key != "status"})
                if verdict.accepted and verdict.pruned == () and without.accepted:
                    dropped = replace(without, pruned=("status",))
                    return Witness(Effect.PRUNED, judges.base.version, obj, verdict, dropped)
        return NoWitness.NO_OBJECT

    def _search(self, probe: Probe, judges: _Judges) -> Witness | NoWitness:
        again = self._seen_before(probe, judges)
        if again is not None:
            return again
        if _CEL in probe.keywords and uses_old({"rule": probe.expression}):
            return self._update(probe, judges)
        tried, patience = 0, min(self._deadline, time.thread_time() + _PATIENCE)
        for value in _values(self._samples, self._nodes, probe, judges):
            tried += 1
            if tried > _MOST_OBJECTS:
                break
            if tried > _FEWEST_OBJECTS and time.thread_time() > patience:
                break
            for obj in self._objects(judges, probe.steps, value):
                found = _confirmed(probe, judges, obj)
                if found is not None:
                    self._found[_question(probe)] = obj
                    return found
        return NoWitness.NO_OBJECT if tried else NoWitness.NO_CANDIDATE

    def _update(self, probe: Probe, judges: _Judges) -> Witness | NoWitness:
        schema = judges.base.side.schemas.get(judges.base.version) or {}
        partner = judges.other.side.schemas.get(judges.other.version) or {}
        node, other = node_at(schema, probe.steps), node_at(partner, probe.steps)
        if node is None or other is None:
            return NoWitness.NO_CANDIDATE
        rule = self._nodes.compile(one_rule(other, probe.expression))
        if rule is None:
            return NoWitness.NO_CANDIDATE

        def place(value: Any) -> Iterator[Object]:
            return self._objects(judges, probe.steps, value)

        text, base = probe.expression, judges.base
        found = update_witness(node, rule, text, base, judges.other, place, self._samples)
        return NoWitness.NO_CANDIDATE if found is None else found

    def _seen_before(self, probe: Probe, judges: _Judges) -> Witness | None:
        """Try the witness of another version first, because versions usually change in the same
        way.
        """
        known = self._found.get(_question(probe))
        if known is None:
            return None
        version = f"{judges.base.side.crd.group}/{judges.base.version}"
        return _confirmed(probe, judges, {**known, "apiVersion": version})

    def _objects(self, judges: _Judges, steps: tuple[str, ...], value: Any) -> Iterator[Object]:
        base = judges.base
        schema = base.side.schemas.get(base.version) or {}
        body = self._samples.small_object(schema) if value is ABSENT and not steps else value
        obj = whole_object(self._samples, base.side, base.version, schema, steps, body)
        if not isinstance(obj, dict):
            return
        point = tokens(concrete_path(steps))

        def wrong(candidate: Any) -> list[str]:
            return error_paths(base.create(candidate))

        found = repair(self._samples, obj, schema, point, wrong)
        if found is None:
            return
        yield found
        path = concrete_path(steps)

        def wrong_anywhere(candidate: Any) -> list[str]:
            """The other side's complaints too, but for those the witness is about."""
            elsewhere = error_paths(judges.other.create(candidate))
            return [
                *wrong(candidate),
                *(place for place in elsewhere if not paths_overlap(place, path)),
            ]

        if path and wrong_anywhere(found):
            again = repair(self._samples, found, schema, point, wrong_anywhere)
            if again is not None:
                yield again


def _question(probe: Probe) -> tuple[object, ...]:
    return probe.effect, probe.steps, probe.keywords, probe.expression, probe.members


def _values(samples: Samples, nodes: _Nodes, probe: Probe, judges: _Judges) -> Iterator[Any]:
    """Yield values that should show the effect, judged by the two nodes alone."""
    schema = judges.base.side.schemas.get(judges.base.version) or {}
    partner = judges.other.side.schemas.get(judges.other.version) or {}
    node, other = node_at(schema, probe.steps), node_at(partner, probe.steps)
    if "default" in probe.keywords:
        yield ABSENT
        return
    if node is None:
        # Something the base side does not know in its schema but keeps.
        yield from ("a", 0, False, [], {}) if other is None else _contrary(other)
        return
    if probe.effect in (Effect.PRUNED, Effect.ACCEPTED) and other is None:
        yield from islice(candidates(samples, node, {}), 12)
        return
    if "preserveUnknownFields" in probe.keywords:
        yield {UNKNOWN: "a"}
        return
    hybrid = _hybrid(node, other or {}, probe)
    differs = _Difference(nodes, node, hybrid, cel=_CEL in probe.keywords)
    tried = candidates(samples, node, hybrid, probe.expression, probe.members)
    for value in islice(tried, _MOST_CANDIDATES):
        if differs(value):
            yield value


def _contrary(node: Mapping[str, Any]) -> Iterator[Any]:
    """Yield values of types that the node does not allow."""
    samples: tuple[Any, ...] = ("a", 0, True, [], {})
    yield from (value for value in samples if not _takes(node, value))


def _takes(node: Mapping[str, Any], value: Any) -> bool:
    return not compile_schema(node).validate(value)


def _hybrid(node: Mapping[str, Any], other: Mapping[str, Any], probe: Probe) -> dict[str, Any]:
    """Return ``node`` with only the changed keywords of ``other``; for CEL, ``other`` with one
    rule.
    """
    if _CEL in probe.keywords:
        return one_rule(other, probe.expression)
    out = {name: value for name, value in node.items() if name not in probe.keywords}
    out |= {name: other[name] for name in probe.keywords if name in other}
    if "properties" in other and "required" in probe.keywords:
        out["required"] = sorted({*(node.get("required") or ()), *probe.members})
    return out


class _Nodes:
    """Cache of compiled nodes, because several findings concern the same path."""

    def __init__(self, compile_rules: RuleCompiler | None) -> None:
        self._compile_rules = compile_rules
        # Nodes are kept beside what was made of them, so that no other can take their id.
        self._members: dict[int, tuple[Mapping[str, Any], _Member]] = {}
        self._programs: dict[int, tuple[Mapping[str, Any], Program | None]] = {}

    def member(self, node: Mapping[str, Any]) -> _Member:
        if id(node) not in self._members:
            self._members[id(node)] = (node, _Member(node))
        return self._members[id(node)][1]

    def own_rules(self, node: Mapping[str, Any]) -> Program | None:
        """Return the rules of the node itself, without those of its children."""
        if id(node) not in self._programs:
            alone = {**_without_rules(node), _CEL: node.get(_CEL) or []}
            self._programs[id(node)] = (node, self.compile(alone))
        return self._programs[id(node)][1]

    def compile(self, node: Mapping[str, Any]) -> Program | None:
        return None if self._compile_rules is None else self._compile_rules(structural(node))


class _Difference:
    """Tells whether two nodes treat a value differently: refuse, prune, default or fail a rule."""

    def __init__(
        self, nodes: _Nodes, node: Mapping[str, Any], hybrid: Mapping[str, Any], *, cel: bool
    ) -> None:
        self._node = nodes.member(node)
        self._hybrid = None if cel else _Member(hybrid)
        self._rule = nodes.compile(hybrid) if cel else None
        self._own = nodes.own_rules(node) if cel else None

    def __call__(self, value: Any) -> bool:
        before = self._node.treat(value)
        if before is None:
            return False
        if self._hybrid is not None:
            after = self._hybrid.treat(value)
            return after is None or not same_json(before, after)
        if self._rule is None or not self._rule.evaluate(before["value"], None).errors:
            return False
        return self._own is None or not self._own.evaluate(before["value"], None).errors


class _Member:
    """A node as the only member of an object, so that nulls and defaults are applied as in an
    object.
    """

    def __init__(self, node: Mapping[str, Any]) -> None:
        self._schema = compile_schema({"type": "object", "properties": {"value": node}})

    def treat(self, value: Any) -> Object | None:
        """Return the object as it would be served, or None if it is refused."""
        holder = {"value": copy_json(value)}
        try:
            take_in(self._schema, holder)
        except MetaError:
            return None
        return None if value_errors(self._schema, holder) else holder


def one_rule(node: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the node with only the rule of this text; its types are kept for the type check."""
    rules = [
        rule for rule in node.get(_CEL) or () if " ".join(str(rule.get("rule", "")).split()) == text
    ]
    return {**_without_rules(node), _CEL: rules[:1]}


def _without_rules(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {name: _without_rules(item) for name, item in node.items() if name != _CEL}
    return [_without_rules(item) for item in node] if isinstance(node, list) else node


def _confirmed(probe: Probe, judges: _Judges, obj: Object) -> Witness | None:
    base = judges.base.create(obj)
    if not base.accepted:
        return None
    sent = obj
    if probe.target:
        assert base.result is not None
        sent = {**base.result, "apiVersion": f"{judges.other.side.crd.group}/{probe.target}"}
    other = judges.other.create(sent)
    effect = effect_of(probe.effect, base, other, concrete_path(probe.steps))
    if not proves(probe.effect, effect):
        return None
    found = Witness(
        Effect.ACCEPTED if judges.swapped else effect or probe.effect,
        probe.version,
        obj,
        base,
        other,
        new_version=probe.target,
        through_status="status" in obj and (judges.base.has_status or judges.other.has_status),
    )
    return replace(found, old=other, new=base) if judges.swapped else found
