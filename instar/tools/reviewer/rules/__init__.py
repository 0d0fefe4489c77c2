"""All review rules and checks, listed by name; ``engine.py`` runs them.

One module per concern; a module lists its rules (for users) and its checks (for the engine).
"""

from __future__ import annotations

from instar.tools.reviewer.report import Hit
from instar.tools.reviewer.rule_kit import (
    ERROR,
    INFO,
    WARNING,
    CrdCheck,
    Lint,
    NodeCheck,
    ReviewRule,
)
from instar.tools.reviewer.rules import (
    bounds,
    combinators,
    converting,
    defaults,
    fields,
    lints,
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
    ReviewRule("unclaimed-change", WARNING, "something changed that no rule knows"),
    ReviewRule(
        "crd-removed",
        ERROR,
        "a CRD is only on the old side: pruning it deletes every object of it",
        (Hit.WRITERS, Hit.READERS, Hit.STORED),
    ),
    ReviewRule("metadata-changed", INFO, "labels or annotations of the CRD changed"),
    ReviewRule(
        "stored-objects-break",
        ERROR,
        "real objects were tried: some are unreadable, pruned, invalid or frozen",
        (Hit.STORED,),
    ),
    ReviewRule(
        "admission-misses-version",
        WARNING,
        "a webhook or policy does not see a version: its rules name others (--admission)",
    ),
    ReviewRule(
        "policy-reads-removed-field",
        ERROR,
        "an expression of a policy fits the old schema and not the new one (--admission)",
        (Hit.WRITERS,),
    ),
    ReviewRule(
        "policy-refuses-crd",
        ERROR,
        "a policy would refuse the new CRD itself (--admission)",
        (Hit.WRITERS,),
    ),
    ReviewRule("suppression-expired", ERROR, "a suppression is past its date"),
    ReviewRule("suppression-unused", INFO, "a suppression hides nothing"),
)
"""Rules of the engine itself."""

RULES: tuple[ReviewRule, ...] = (
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
    *lints.RULES,
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

LINTS: tuple[Lint, ...] = (*converting.LINTS, *lints.LINTS)

BY_ID = {rule.id: rule for rule in RULES}
