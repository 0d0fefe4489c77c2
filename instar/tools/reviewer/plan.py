"""Makes an ordered plan, release by release, from the findings of a review. Pure.

``reviewing.py`` attaches it to the review of a CRD. The order is always: add and serve, deprecate,
flip storage, migrate, unserve, prune storedVersions, remove. A step names its precondition, its
command and its rollback.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from instar.base.escaping import shell_word
from instar.base.fast_dataclass import dataclass
from instar.tools.reviewer.report import Finding, PlanRelease, PlanStep, Severity
from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.rule_groups import (
    BOUNDS_TIGHTEN,
    DEFAULT_CHANGES,
    LIST_TYPE_CHANGES,
    RULES_TIGHTEN,
    VALUE_LOSSES,
    VALUES_SHRINK,
)

_TIGHTENING_RULES = (
    *BOUNDS_TIGHTEN,
    *VALUES_SHRINK,
    *RULES_TIGHTEN,
    "required-added",
    "pattern-changed",
)
_OWNERSHIP = (*LIST_TYPE_CHANGES, "map-type-changed")
_IMPOSSIBLE = ("scope-changed", "kind-changed")
_CONVERSION_LOSS = ("conversion-none-loses",)
_APPLY = "kubectl apply --server-side -f crd.yaml"


@dataclass(frozen=True)
class _Ways:
    """How the versions of the two CRDs differ."""

    name: str
    added: list[str]
    removed: list[str]
    unserved: list[str]
    old_storage: str
    new_storage: str
    webhook: bool
    warned: frozenset[str]
    """Versions that were deprecated before."""

    @property
    def leaving(self) -> list[str]:
        return sorted({*self.removed, *self.unserved})

    @property
    def flips(self) -> bool:
        return bool(self.old_storage and self.new_storage) and self.old_storage != self.new_storage


def plan(
    old: ReviewedCrd | None, new: ReviewedCrd, findings: Sequence[Finding]
) -> tuple[PlanStep, ...]:
    """Return the plan; empty for a CRD alone and for cosmetic changes."""
    if old is None or all(item.severity is Severity.INFO for item in findings):
        return ()
    ways = _ways(old, new)
    steps = [
        *_impossible(findings, ways),
        *_fields(findings, ways),
        *_tighter(findings, ways),
        *_defaults(findings, ways),
        *_ownership(findings),
        *_conversion_losses(findings, ways),
        *_versions(ways),
    ]
    return tuple(sorted(steps, key=lambda step: step.release.rank))


def _ways(old: ReviewedCrd, new: ReviewedCrd) -> _Ways:
    before = {item.name: item for item in old.crd.versions}
    after = {item.name: item for item in new.crd.versions}
    return _Ways(
        name=new.name,
        added=sorted(set(after) - set(before)),
        removed=sorted(set(before) - set(after)),
        unserved=sorted(
            name
            for name in set(before) & set(after)
            if before[name].served and not after[name].served
        ),
        old_storage=old.crd.storage_version(),
        new_storage=new.crd.storage_version(),
        warned=frozenset(name for name, item in before.items() if item.deprecated),
        webhook=new.crd.conversion.strategy == "Webhook",
    )


def _named(findings: Sequence[Finding], names: Sequence[str]) -> list[Finding]:
    return [item for item in findings if item.rule in names and item.severity is not Severity.INFO]


def _places(found: Sequence[Finding], most: int = 4) -> str:
    places = list(dict.fromkeys(item.path or "the root" for item in found))
    more = f" and {len(places) - most} more" if len(places) > most else ""
    return ", ".join(places[:most]) + more


def _impossible(findings: Sequence[Finding], ways: _Ways) -> Iterator[PlanStep]:
    found = _named(findings, _IMPOSSIBLE)
    if found:
        yield PlanStep(
            release=PlanRelease.FIRST,
            title="create a new CRD, because scope and kind cannot change",
            why=f"the API server refuses to change {_places(found)} of an established CRD",
            preconditions=("a new group or plural for the new CRD",),
            commands=(f"kubectl get {shell_word(ways.name)} -A -o yaml > backup.yaml", _APPLY),
            rollback="delete the new CRD; the old one was not touched",
        )


def _fields(findings: Sequence[Finding], ways: _Ways) -> Iterator[PlanStep]:
    """Return the steps that deprecate fields."""
    found = _named(findings, VALUE_LOSSES)
    if not found:
        return
    places = _places(found)
    yield PlanStep(
        release=PlanRelease.N,
        title=f"add the fields that replace {places}, beside the old ones",
        why="values do not move by themselves, and clients need time",
        preconditions=("the new field is optional and has no default that hides the old one",),
        commands=(_APPLY,),
        rollback="apply the old CRD; nothing depends on the new field yet",
    )
    yield PlanStep(
        release=PlanRelease.N,
        title=f"keep {places} working",
        why="the controller reads the new field first and falls back to the old one",
        rollback="nothing to undo",
    )
    yield PlanStep(
        release=PlanRelease.N,
        title=f"deprecate {places}",
        why="a sentence in its description, a Condition or Event on objects that use it",
        commands=(f"kubectl get {shell_word(ways.name)} -A -o json > objects.json",),
    )
    yield PlanStep(
        release=PlanRelease.N1,
        title="update documentation, examples, charts and clients, and move stored values",
        preconditions=(
            f"no object uses {places}: instar review --objects kube: OLD NEW lists those that do",
        ),
    )
    yield PlanStep(
        release=PlanRelease.N2,
        title=f"add a version without {places}, and convert between the two",
        why="removing it from a version that is served breaks that version's promise",
        preconditions=("every object was rewritten without it",),
        rollback="bring the field back into the schema; pruned values do not return, so keep the "
        "backup of objects.json until then",
    )


def _tighter(findings: Sequence[Finding], ways: _Ways) -> Iterator[PlanStep]:
    found = _named(findings, _TIGHTENING_RULES)
    if not found:
        return
    yield PlanStep(
        release=PlanRelease.N,
        title=f"warn users of {_places(found)}: the next release accepts less",
        why="existing objects stay valid until the field changes, but writes that create or change "
        "it are refused",
        preconditions=("the owners of violating objects know",),
        commands=(f"instar review --objects kube: {shell_word('kube:' + ways.name)} crd.yaml",),
        rollback="nothing to undo",
    )
    yield PlanStep(
        release=PlanRelease.N1,
        title=_tightening(found),
        preconditions=("no stored object breaks the new schema",),
        commands=(_APPLY,),
        rollback="apply the old CRD: it accepts everything that the new one accepts",
    )


_MOST_NAMED = 3


def _tightening(found: Sequence[Finding]) -> str:
    """Return what to change, field by field: ``lower the maximum of spec.size``."""
    actions = list(
        dict.fromkeys(
            f"{_ACTIONS.get(item.rule, 'tighten')} {item.path or 'the root'}" for item in found
        )
    )
    more = f" and {len(actions) - _MOST_NAMED} more" if len(actions) > _MOST_NAMED else ""
    return "; ".join(actions[:_MOST_NAMED]) + more


_ACTIONS = {
    "minimum-tightened": "raise the minimum of",
    "maximum-tightened": "lower the maximum of",
    "multiple-of-tightened": "change multipleOf of",
    "min-length-tightened": "raise the minimum length of",
    "max-length-tightened": "lower the maximum length of",
    "min-items-tightened": "raise the minimum number of items of",
    "max-items-tightened": "lower the maximum number of items of",
    "min-properties-tightened": "raise the minimum number of properties of",
    "max-properties-tightened": "lower the maximum number of properties of",
    "format-tightened": "require the format of",
    "enum-added": "restrict the values of",
    "enum-value-removed": "remove values of",
    "pattern-added": "add the pattern of",
    "pattern-changed": "change the pattern of",
    "nullable-removed": "refuse null for",
    "required-added": "require",
    "rule-added": "add the validation rule of",
    "rule-changed": "change the validation rule of",
}
"""The change that a rule of the review is about, as a verb with its object."""


def _defaults(findings: Sequence[Finding], ways: _Ways) -> Iterator[PlanStep]:
    found = _named(findings, DEFAULT_CHANGES)
    if found:
        yield PlanStep(
            release=PlanRelease.N,
            title=f"write the old default of {_places(found)} into every stored object",
            why="a default is filled in on reading; rewriting an object under the old CRD makes "
            "its present meaning permanent",
            preconditions=("the old CRD is still installed",),
            commands=(f"instar migrate {shell_word(ways.name)} --rewrite-current",),
            rollback="nothing to undo: objects say explicitly what they meant before",
        )


def _ownership(findings: Sequence[Finding]) -> Iterator[PlanStep]:
    found = _named(findings, _OWNERSHIP)
    if found:
        yield PlanStep(
            release=PlanRelease.N,
            title=f"change how {_places(found)} is merged while no applier is at work",
            why="field managers own other parts than before: the first apply afterwards may "
            "conflict or drop what another manager added",
            preconditions=("no list holds two items with equal keys",),
            commands=(_APPLY, "kubectl apply --server-side --force-conflicts -f objects.yaml"),
            rollback="apply the old CRD, then every applier once more",
        )


def _conversion_losses(findings: Sequence[Finding], ways: _Ways) -> Iterator[PlanStep]:
    """Return the step without which a flip and a rewrite would destroy fields."""
    found = _named(findings, _CONVERSION_LOSS)
    if found:
        yield PlanStep(
            release=PlanRelease.FIRST,
            title=f"give {_places(found)} a place in every version, or convert with a webhook",
            why="under strategy None every write, and so every rewrite of stored objects, drops "
            "what the storage version does not have",
            preconditions=("instar review no longer finds conversion-none-loses",),
            rollback="nothing to undo",
        )


def _versions(ways: _Ways) -> Iterator[PlanStep]:
    name = ways.name
    if ways.added:
        yield _add_and_serve(ways)
    silent = [item for item in ways.leaving if item not in ways.warned]
    if silent:
        yield PlanStep(
            release=PlanRelease.N1,
            title=f"deprecate {', '.join(silent)}",
            why="deprecated: true sends a warning with every request",
            preconditions=("its replacement has been served for one release",),
            commands=tuple(
                f"instar versions {shell_word(name)} deprecate {shell_word(item)}"
                for item in silent
            ),
            rollback="set deprecated: false",
        )
    if ways.flips:
        yield _flip(ways)
    if ways.flips or ways.removed:
        yield _migrate(ways)
    if ways.leaving:
        yield PlanStep(
            release=PlanRelease.N3,
            title=f"stop serving {', '.join(ways.leaving)}",
            preconditions=(
                "no client requested it during a whole release",
                "no manifest in Git names it: instar convert rewrites them",
            ),
            commands=(
                f"instar versions {shell_word(name)}",
                *(
                    f"instar versions {shell_word(name)} unserve {shell_word(item)}"
                    for item in ways.leaving
                ),
            ),
            rollback="set served: true again; nothing stored changed",
        )
    if ways.flips or ways.removed:
        yield _prune(ways)
    if ways.removed:
        yield PlanStep(
            release=PlanRelease.N4,
            title=f"remove {', '.join(ways.removed)} from spec.versions",
            preconditions=(
                f"status.storedVersions is [{ways.new_storage}]",
                "managedFields name no removed version: instar migrate --clean-managed-fields",
            ),
            commands=(
                f"kubectl get crd {shell_word(name)} -o jsonpath='{{.status.storedVersions}}'",
                *(
                    f"instar versions {shell_word(name)} remove {shell_word(item)}"
                    for item in ways.removed
                ),
            ),
            rollback="add the version again as it was; its objects are stored elsewhere by now",
        )


def _add_and_serve(ways: _Ways) -> PlanStep:
    added = ", ".join(ways.added)
    check = (
        "the conversion webhook answers for every pair of versions, both ways: instar check"
        if ways.webhook
        else "the schemas differ in nothing that strategy None would lose"
    )
    return PlanStep(
        release=PlanRelease.N,
        title=f"add and serve {added}; keep storing {ways.old_storage}",
        why="while nothing is stored in it, the new version can still be taken back",
        preconditions=(check,),
        commands=(
            _APPLY,
            f"kubectl wait --for=condition=Established {shell_word('crd/' + ways.name)}",
        ),
        rollback=f"apply the old CRD: nothing is stored in {added} yet",
    )


def _flip(ways: _Ways) -> PlanStep:
    return PlanStep(
        release=PlanRelease.N2,
        title=f"flip storage from {ways.old_storage} to {ways.new_storage}",
        why="new writes are stored at the new version; existing objects stay as they are",
        preconditions=(
            f"{ways.new_storage} has been served for one release",
            f"the release to roll back to knows {ways.new_storage}",
        ),
        commands=(
            f"kubectl get {shell_word(ways.name)} -A -o yaml > backup.yaml",
            f"instar versions {shell_word(ways.name)} storage {shell_word(ways.new_storage)}",
        ),
        rollback="ROLLBACK POINT: flip back; from the first write on, the old release must know "
        f"{ways.new_storage}",
    )


def _migrate(ways: _Ways) -> PlanStep:
    return PlanStep(
        release=PlanRelease.N2,
        title=f"rewrite every stored object at {ways.new_storage}",
        why="an object keeps its stored version until a client writes it",
        preconditions=(
            *(("the conversion webhook is healthy",) if ways.webhook else ()),
            "instar migrate --plan names no field that would be lost",
            "instar migrate --dry-run lists no object that would be refused",
        ),
        commands=(
            f"instar census {shell_word(ways.name)}",
            f"instar migrate {shell_word(ways.name)} --dry-run",
            f"instar migrate {shell_word(ways.name)} --clean-managed-fields",
        ),
        rollback="flip storage back and migrate again",
        rewrites=True,
    )


def _prune(ways: _Ways) -> PlanStep:
    return PlanStep(
        release=PlanRelease.N3,
        title=f"prune status.storedVersions to [{ways.new_storage}]",
        why="the API server refuses to remove a version that is named there; instar migrate trims "
        "it after a pass over every object, and the server would believe a patch that is wrong",
        preconditions=("the migration ended without failures", "the CRD did not change meanwhile"),
        commands=(f"instar migrate {shell_word(ways.name)}",),
        rollback="add the version to status.storedVersions again",
    )
