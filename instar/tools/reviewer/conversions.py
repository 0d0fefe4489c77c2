"""Tries the real converter between all versions: finds fields that it drops or makes invalid, with
an example object.

``reviewing.py`` calls it when a converter is given. The module converts one small object per field
to every other version and back. The deep search for data loss is ``instar check``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from instar.base.json_values import Object, copy_json, same_json
from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.rule_engine import RuleCompiler
from instar.tools.reviewer.changes import Steps, children, value_path
from instar.tools.reviewer.report import Effect, Finding, ObjectVerdict, Severity, Witness
from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.rules import BY_ID
from instar.tools.reviewer.server_model import CrdSimulator
from instar.tools.reviewer.stored import Convert, Unconvertible
from instar.tools.reviewer.witnesses.placing import concrete_path, tokens, whole_object
from instar.tools.reviewer.witnesses.samples import Samples

_MOST_FIELDS = 150


def converted_findings(
    new: ReviewedCrd,
    convert: Convert,
    compile_rules: RuleCompiler | None,
    severities: Mapping[str, Severity],
) -> Iterator[Finding]:
    names = new.crd.served()
    storage = new.crd.storage_version()
    names += [storage] if storage and storage not in names else []
    judges = {name: CrdSimulator(new, name, compile_rules) for name in names}
    samples = Samples()
    for source in names:
        probes = list(_probes(samples, judges[source], new, source))
        for target in names:
            if source != target:
                for finding in _pair(judges[source], judges[target], probes, convert):
                    severity = severities.get(finding.rule, finding.severity)
                    if severity is not Severity.OFF:
                        yield replace(finding, severity=severity)


def _probes(
    samples: Samples, judge: CrdSimulator, new: ReviewedCrd, version: str
) -> Iterator[tuple[Steps, Object]]:
    schema = new.schemas[version]
    fields = [item for item in _fields((), schema) if item[0][1:2] not in (("metadata",),)]
    for steps, node in fields[:_MOST_FIELDS]:
        obj = whole_object(samples, new, version, schema, steps, samples.minimal(node))
        if not isinstance(obj, dict):
            continue
        verdict = judge.create(obj)
        if verdict.accepted and verdict.result is not None:
            yield steps, verdict.result


def _fields(steps: Steps, node: Mapping[str, Any]) -> Iterator[tuple[Steps, Mapping[str, Any]]]:
    """Yield the leaves of a schema."""
    below = children(node)
    if steps in (("properties", "apiVersion"), ("properties", "kind")):
        return
    if not below:
        yield steps, node
    for step, child in below.items():
        yield from _fields((*steps, *step), child)


def _pair(
    source: CrdSimulator, target: CrdSimulator, probes: list[tuple[Steps, Object]], convert: Convert
) -> Iterator[Finding]:
    group = source.side.crd.group
    for steps, obj in probes:
        try:
            there = convert([copy_json(obj)], f"{group}/{target.version}")[0]
            taken = target.create(there)
            back = convert([copy_json(taken.result or there)], f"{group}/{source.version}")[0]
        except Unconvertible as error:
            refused = ObjectVerdict(False, (str(error),))
            yield _finding("conversion-fails", source, target, steps, obj, refused, str(error))
            continue
        if not taken.accepted:
            said = "; ".join(taken.texts)
            yield _finding("conversion-fails", source, target, steps, obj, taken, said)
            continue
        source.pipeline.after_conversion(back)
        source.pipeline.default(back)
        if not same_json(_value(obj, steps), _value(back, steps)):
            said = "it does not survive the way there and back"
            yield _finding("conversion-loses", source, target, steps, obj, taken, said)


def _value(obj: Object, steps: Steps) -> Any:
    value: Any = obj
    for token in tokens(concrete_path(steps)):
        try:
            value = value[token]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return value


def _finding(
    rule: str,
    source: CrdSimulator,
    target: CrdSimulator,
    steps: Steps,
    obj: Object,
    seen: ObjectVerdict,
    said: str,
) -> Finding:
    effect = Effect.REFUSED if rule == "conversion-fails" else Effect.CHANGED
    witness = Witness(
        effect,
        source.version,
        obj,
        ObjectVerdict(True, result=obj),
        seen,
        new_version=target.version,
    )
    return Finding(
        rule=rule,
        severity=BY_ID[rule].severity,
        crd=source.side.name,
        version=source.version,
        path=value_path(steps),
        key=target.version,
        pointer=source.side.schema_pointer(source.version, steps),
        hits=BY_ID[rule].hits,
        message=f"{source.version} → {target.version}: {said}",
        witness=witness,
    )
