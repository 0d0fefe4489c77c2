"""Review rules about what a version offers besides its schema: subresources, columns, selectable
fields.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from instar.kube.api.crd import CrdVersion, PrinterColumn
from instar.tools.reviewer.report import Effect
from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.rule_kit import (
    CLIENTS,
    ERROR,
    INFO,
    READERS,
    STORED,
    WARNING,
    WRITERS,
    CrdCheck,
    FindingDraft,
    Probe,
    ReviewRule,
)

Comparison = Callable[[ReviewedCrd, ReviewedCrd], Iterator[FindingDraft]]

RULES = (
    ReviewRule(
        "subresource-status-added",
        ERROR,
        "writes to the object no longer touch status, and writes to /status touch nothing else",
        (WRITERS, CLIENTS),
    ),
    ReviewRule(
        "subresource-status-removed",
        ERROR,
        "/status answers 404, and any write to the object may change its status",
        (WRITERS, CLIENTS),
    ),
    ReviewRule("subresource-scale-added", INFO, "/scale is new", (CLIENTS,)),
    ReviewRule(
        "subresource-scale-removed",
        ERROR,
        "/scale answers 404: kubectl scale and autoscalers stop",
        (WRITERS, READERS, CLIENTS),
    ),
    ReviewRule(
        "subresource-scale-changed",
        ERROR,
        "/scale reads and writes other fields",
        (WRITERS, READERS),
    ),
    ReviewRule("printer-column-removed", INFO, "a column of kubectl get is gone", (READERS,)),
    ReviewRule("printer-column-added", INFO, "a new column of kubectl get", (READERS,)),
    ReviewRule(
        "printer-column-changed", INFO, "a column of kubectl get shows something else", (READERS,)
    ),
    ReviewRule(
        "selectable-field-removed",
        ERROR,
        "lists and watches with this field selector are refused",
        (READERS, CLIENTS),
    ),
    ReviewRule("selectable-field-added", INFO, "a new field selector", (READERS,)),
    ReviewRule(
        "preserve-unknown-fields-disabled",
        ERROR,
        "spec.preserveUnknownFields went: fields outside the schema are pruned everywhere",
        (STORED, WRITERS, READERS),
    ),
    ReviewRule(
        "preserve-unknown-fields-enabled",
        WARNING,
        "spec.preserveUnknownFields came: nothing is pruned any more",
        (READERS, CLIENTS),
    ),
)


def _shared(old: ReviewedCrd, new: ReviewedCrd) -> Iterator[tuple[CrdVersion, CrdVersion]]:
    for after in new.crd.versions:
        before = old.crd.version(after.name)
        if before is not None:
            yield before, after


def subresources(old: ReviewedCrd, new: ReviewedCrd) -> Iterator[FindingDraft]:
    for before, after in _shared(old, new):
        at = new.version_pointer(after.name, "subresources")
        if before.has_status != after.has_status:
            came = after.has_status
            yield FindingDraft(
                rule=f"subresource-status-{'added' if came else 'removed'}",
                version=after.name,
                pointer=at,
                message="the status subresource is on now: a status sent with the object is ignored"
                if came
                else "the status subresource is off now: controllers that write /status get 404",
                probe=Probe(Effect.PRUNED, after.name, keywords=frozenset({"subresources"}))
                if came
                else None,
                why_no_witness="" if came else "it is the same object; /status is not there",
            )
        if before.scale == after.scale:
            continue
        word = "added" if before.scale is None else "removed" if after.scale is None else "changed"
        yield FindingDraft(
            rule=f"subresource-scale-{word}",
            version=after.name,
            pointer=at,
            message=f"the scale subresource was {word}",
            why_no_witness="it is the same object; /scale answers differently",
        )


def columns(old: ReviewedCrd, new: ReviewedCrd) -> Iterator[FindingDraft]:
    for before, after in _shared(old, new):
        was, now = _by_name(before.columns), _by_name(after.columns)
        at = new.version_pointer(after.name, "additionalPrinterColumns")
        for name in sorted({*was, *now}):
            if was.get(name) == now.get(name):
                continue
            word = "removed" if name not in now else "added" if name not in was else "changed"
            yield FindingDraft(
                rule=f"printer-column-{word}",
                version=after.name,
                key=name,
                pointer=at,
                message=f"column {name} was {word}",
            )


def _by_name(columns: tuple[PrinterColumn, ...]) -> dict[str, PrinterColumn]:
    return {column.name: column for column in columns}


def selectable(old: ReviewedCrd, new: ReviewedCrd) -> Iterator[FindingDraft]:
    for before, after in _shared(old, new):
        was, now = set(before.selectable_fields), set(after.selectable_fields)
        at = new.version_pointer(after.name, "selectableFields")
        for path in sorted(was ^ now):
            gone = path in was
            yield FindingDraft(
                rule=f"selectable-field-{'removed' if gone else 'added'}",
                version=after.name,
                path=path.removeprefix("."),
                pointer=at,
                message=f"{path} can {'no longer' if gone else 'now'} be selected by",
                why_no_witness="a selector is no object",
            )


def pruning(old: ReviewedCrd, new: ReviewedCrd) -> Iterator[FindingDraft]:
    was, now = old.crd.preserve_unknown, new.crd.preserve_unknown
    if was == now:
        return
    name = "preserve-unknown-fields-" + ("enabled" if now else "disabled")
    yield FindingDraft(
        rule=name,
        path="spec.preserveUnknownFields",
        pointer=("spec", "preserveUnknownFields"),
        message="fields outside the schema are kept everywhere now"
        if now
        else "fields outside the schema are pruned now, also from stored objects",
        probe=Probe(
            Effect.PRUNED if was else Effect.ACCEPTED,
            new.crd.storage_version(),
            keywords=frozenset({"preserveUnknownFields"}),
        ),
    )


def _quiet_where_unserved(run: Comparison) -> Comparison:
    """Wrap a check so that it skips versions that are not served."""

    def compare(old: ReviewedCrd, new: ReviewedCrd) -> Iterator[FindingDraft]:
        served = new.crd.served()
        for draft in run(old, new):
            if draft.version in served:
                yield draft
            else:
                yield replace(draft, severity=INFO, hits=(), probe=None)

    return compare


CHECKS = (
    CrdCheck(("versions[].subresources",), _quiet_where_unserved(subresources)),
    CrdCheck(("versions[].additionalPrinterColumns",), _quiet_where_unserved(columns)),
    CrdCheck(("versions[].selectableFields",), _quiet_where_unserved(selectable)),
    CrdCheck(("preserveUnknownFields",), pruning),
)
