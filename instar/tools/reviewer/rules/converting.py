"""Review rules about conversion between versions: the strategy, whether a conversion is needed, and
what strategy None loses.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from instar.kube.api.crd import WebhookClient
from instar.tools.reviewer.changes import NodeChange, changes
from instar.tools.reviewer.report import Effect
from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.rule_kit import (
    CLIENTS,
    ERROR,
    READERS,
    STORED,
    WARNING,
    WRITERS,
    CrdCheck,
    FindingDraft,
    Probe,
    ReviewRule,
)
from instar.tools.reviewer.rules import (
    bounds,
    combinators,
    defaults,
    ownership,
    types,
    unknown,
    validations,
    values,
)

RULES = (
    ReviewRule(
        "conversion-strategy-changed",
        WARNING,
        "objects of other versions are converted by other means",
        (READERS, WRITERS, STORED),
    ),
    ReviewRule(
        "conversion-webhook-changed",
        WARNING,
        "another endpoint or certificate answers for conversions",
        (READERS, WRITERS, STORED),
    ),
    ReviewRule(
        "conversion-review-versions-changed",
        WARNING,
        "the webhook is asked in another ConversionReview version",
        (READERS, WRITERS),
    ),
    ReviewRule(
        "conversion-webhook-unneeded",
        WARNING,
        "a conversion webhook with nothing to convert: only its outages are felt",
        (READERS, WRITERS),
    ),
    ReviewRule(
        "conversion-loses",
        ERROR,
        "the given converter does not bring a field there and back",
        (WRITERS, READERS, STORED),
    ),
    ReviewRule(
        "conversion-fails",
        ERROR,
        "the given converter refuses an object or makes it invalid",
        (WRITERS, READERS, STORED),
    ),
    ReviewRule(
        "conversion-none-loses",
        ERROR,
        "strategy None between versions of which one does not know the field: silent loss",
        (WRITERS, READERS, STORED),
    ),
    ReviewRule(
        "conversion-none-differs",
        WARNING,
        "strategy None between versions that judge or default a field differently",
        (WRITERS, READERS, CLIENTS),
    ),
)


def strategy(old: ReviewedCrd, new: ReviewedCrd) -> Iterator[FindingDraft]:
    before, after = old.crd.conversion, new.crd.conversion
    at = ("spec", "conversion")
    why = "it depends on what the converters do; give --converter to have them run"
    if before.strategy != after.strategy:
        loses = after.strategy == "None" and len(_schemas(new)) > 1
        yield FindingDraft(
            rule="conversion-strategy-changed",
            severity=ERROR if loses else None,
            path="spec.conversion.strategy",
            pointer=(*at, "strategy"),
            message=f"{before.strategy} became {after.strategy}"
            + (", although the versions differ" if loses else ""),
            why_no_witness=why,
        )
        return
    if _place(before.client) != _place(after.client):
        yield FindingDraft(
            rule="conversion-webhook-changed",
            path="spec.conversion.webhook.clientConfig",
            pointer=(*at, "webhook", "clientConfig"),
            message=f"{_place(before.client)} became {_place(after.client)}",
            why_no_witness=why,
        )
    gone = [name for name in before.review_versions if name not in after.review_versions]
    first = before.review_versions[:1] != after.review_versions[:1]
    if gone or first:
        yield FindingDraft(
            rule="conversion-review-versions-changed",
            path="spec.conversion.webhook.conversionReviewVersions",
            pointer=(*at, "webhook", "conversionReviewVersions"),
            message=f"{', '.join(before.review_versions) or 'none'} became "
            f"{', '.join(after.review_versions) or 'none'}",
            why_no_witness=why,
        )


def _place(client: WebhookClient | None) -> str:
    if client is None:
        return "nothing"
    bundle = f" (caBundle of {len(client.ca_bundle)} characters)" if client.ca_bundle else ""
    if client.service is None:
        return f"{client.url}{bundle}"
    service = client.service
    return f"{service.namespace}/{service.name}:{service.port}{service.path}{bundle}"


def unneeded_webhook(side: ReviewedCrd) -> Iterator[FindingDraft]:
    if side.crd.conversion.strategy != "Webhook" or len(_schemas(side)) > 1:
        return
    one = len(side.crd.versions) == 1
    yield FindingDraft(
        rule="conversion-webhook-unneeded",
        path="spec.conversion.strategy",
        pointer=("spec", "conversion", "strategy"),
        message="there is only one version" if one else "all versions have the same schema",
        why_no_witness="nothing is refused; the webhook is a risk without a use",
    )


def _schemas(side: ReviewedCrd) -> set[str]:
    return {
        json.dumps(_plain(schema), sort_keys=True, default=str) for schema in side.schemas.values()
    }


def _plain(node: Any) -> Any:
    """Return a schema without its descriptions."""
    if isinstance(node, dict):
        return {
            name: _plain(item)
            for name, item in node.items()
            if not (name in unknown.DOCS and isinstance(item, str))
        }
    return [_plain(item) for item in node] if isinstance(node, list) else node


def version_pairs(side: ReviewedCrd) -> Iterator[FindingDraft]:
    """Yield every ordered pair of versions between which requests or storage may convert."""
    if side.crd.conversion.strategy == "Webhook" or len(_schemas(side)) < 2:
        return
    names = side.crd.served()
    storage = side.crd.storage_version()
    names += [storage] if storage and storage not in names else []
    for source in names:
        for target in names:
            if source != target:
                yield from _pair(side, source, target)


def fields_lost_by_storage_flip(old: ReviewedCrd, new: ReviewedCrd) -> Iterator[FindingDraft]:
    """Report the fields that stored objects lose when they are rewritten at another storage
    version.

    ``version_pairs`` says the same of two versions that were there before, so a review leaves it
    out as known. With the new storage version the next write of every stored object loses the
    field.
    """
    target = new.crd.storage_version()
    if new.crd.conversion.strategy == "Webhook" or target == old.crd.storage_version():
        return
    if old.crd.version(target) is None:
        return  # the pair is new, so ``version_pairs`` reports it
    for source in dict.fromkeys([old.crd.storage_version(), *old.crd.stored_versions]):
        if source == target or new.crd.version(source) is None:
            continue
        for draft in _pair(new, source, target):
            if draft.rule == "conversion-none-loses":
                yield replace(
                    draft,
                    key=f"{draft.key} stored",
                    message=f"objects stored at {source} lose it with their next write, because "
                    f"{target} is the storage version now",
                )


def _pair(side: ReviewedCrd, source: str, target: str) -> Iterator[FindingDraft]:
    for change in changes(side.schemas[source], side.schemas[target]):
        if change.new is None:
            kept = change.new_parent.get("x-kubernetes-preserve-unknown-fields")
            if not kept and not side.crd.preserve_unknown:
                yield _lost(side, change, source, target)
        elif change.old is not None:
            yield from _judged(side, change, source, target)


def _lost(side: ReviewedCrd, change: NodeChange, source: str, target: str) -> FindingDraft:
    storage = side.crd.storage_version()
    when = " when it is stored" if target == storage else f" when read at {target}"
    return FindingDraft(
        rule="conversion-none-loses",
        version=source,
        path=change.path,
        key=target,
        pointer=side.schema_pointer(source, change.steps),
        message=f"{source} → {target}: written at {source}, it is dropped{when}",
        probe=Probe(Effect.PRUNED, source, change.steps, target=target),
    )


_CHECKS = (
    *types.CHECKS,
    *values.CHECKS,
    *bounds.CHECKS,
    *combinators.CHECKS,
    *defaults.CHECKS,
    *ownership.CHECKS,
    *unknown.CHECKS,
    *validations.CHECKS,
)


def _judged(
    side: ReviewedCrd, change: NodeChange, source: str, target: str
) -> Iterator[FindingDraft]:
    for check in _CHECKS:
        if not check.keywords & change.keywords:
            continue
        for draft in check.run(change):
            if draft.effect in (Effect.REFUSED, Effect.PRUNED, Effect.CHANGED):
                lost = draft.effect is Effect.PRUNED
                yield FindingDraft(
                    rule="conversion-none-loses" if lost else "conversion-none-differs",
                    version=source,
                    path=change.path,
                    key=f"{target} {draft.rule} {draft.key}".strip(),
                    pointer=side.schema_pointer(target, change.steps),
                    message=f"{source} → {target}: {draft.message}",
                    details=draft.details,
                    unsure=True,
                    probe=Probe(
                        draft.effect,
                        source,
                        change.steps,
                        check.keywords & change.keywords,
                        target,
                        draft.expression,
                        draft.members,
                    ),
                )


CHECKS = (
    CrdCheck(("conversion",), strategy),
    CrdCheck(("versions[].storage",), fields_lost_by_storage_flip),
)
LINTS = (unneeded_webhook, version_pairs)
