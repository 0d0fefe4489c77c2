"""Every rule and check by name: nothing registers itself.

One module per concern; a module lists its rules (for people) and its checks (for the engine).
"""

from __future__ import annotations

from instar.reviewer.report import Hit
from instar.reviewer.rulekit import ERROR, INFO, WARNING, CrdCheck, Lint, NodeCheck, Rule
from instar.reviewer.rules import (
    bounds,
    combinators,
    converting,
    defaults,
    fields,
    habits,
    naming,
    ownership,
    serving,
    types,
    unknown,
    validations,
    values,
    versions,
)

OWN_RULES = (
    Rule("unclaimed-change", WARNING, "something changed that no rule knows"),
    Rule(
        "crd-removed",
        ERROR,
        "a CRD is only on the old side: pruning it deletes every object of it",
        (Hit.WRITERS, Hit.READERS, Hit.STORED),
    ),
    Rule("metadata-changed", INFO, "labels or annotations of the CRD changed"),
    Rule(
        "stored-objects-break",
        ERROR,
        "real objects were tried: some are unreadable, pruned, invalid or frozen",
        (Hit.STORED,),
    ),
    Rule(
        "admission-misses-version",
        WARNING,
        "a webhook or policy does not see a version: its rules name others (--admission)",
    ),
    Rule(
        "policy-reads-removed-field",
        ERROR,
        "an expression of a policy fits the old schema and not the new one (--admission)",
        (Hit.WRITERS,),
    ),
    Rule(
        "policy-refuses-crd",
        ERROR,
        "a policy would refuse the new CRD itself (--admission)",
        (Hit.WRITERS,),
    ),
    Rule("suppression-expired", ERROR, "a suppression is past its date"),
    Rule("suppression-unused", INFO, "a suppression hides nothing"),
)
"""Rules of the engine itself."""

RULES: tuple[Rule, ...] = (
    *fields.RULES,
    *types.RULES,
    *values.RULES,
    *bounds.RULES,
    *combinators.RULES,
    *defaults.RULES,
    *ownership.RULES,
    *unknown.RULES,
    *validations.RULES,
    *versions.RULES,
    *naming.RULES,
    *serving.RULES,
    *converting.RULES,
    *habits.RULES,
    *OWN_RULES,
)

NODE_CHECKS: tuple[NodeCheck, ...] = (
    *fields.CHECKS,
    *types.CHECKS,
    *values.CHECKS,
    *bounds.CHECKS,
    *combinators.CHECKS,
    *defaults.CHECKS,
    *ownership.CHECKS,
    *unknown.CHECKS,
    *validations.CHECKS,
)

CRD_CHECKS: tuple[CrdCheck, ...] = (
    *versions.CHECKS,
    *naming.CHECKS,
    *serving.CHECKS,
    *converting.CHECKS,
)

LINTS: tuple[Lint, ...] = (*converting.LINTS, *habits.LINTS)

BY_ID = {rule.id: rule for rule in RULES}
