"""Advice for findings, by rule; rules with the same advice share one entry.

``instar review``, the SARIF renderer and the console's rules view print it.
"""

from __future__ import annotations

from instar.tools.reviewer.rule_groups import (
    BOUNDS_LOOSEN,
    BOUNDS_TIGHTEN,
    DEFAULT_CHANGES,
    FIELD_REMOVALS,
    LIST_TYPE_CHANGES,
    NAMES_CHANGE,
    RULES_TIGHTEN,
    VALUES_SHRINK,
    VERSION_REMOVALS,
)

_ADVICE: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("admission-misses-version",),
        "Name the version in the rules, or use matchPolicy Equivalent: the object is converted to "
        "a version they name.",
    ),
    (
        ("policy-reads-removed-field",),
        "Change the policy first, so that it makes sense under both schemas (has(), optional "
        "fields), then the CRD.",
    ),
    (
        ("policy-refuses-crd",),
        "Make the CRD fit the policy, or except it there, before it is applied.",
    ),
    (
        ("field-added",),
        "Nothing to do. Clients that decode strictly meet a field they do not know.",
    ),
    (
        ("field-constrained",),
        "Try the stored objects (--objects) first; or describe the field in a new version.",
    ),
    (
        FIELD_REMOVALS,
        "Keep the field in this version: add the new one beside it, deprecate, and leave the old "
        "one out of a new version only. The plan spells the steps out.",
    ),
    (
        ("field-boolean", "field-float", "field-uint", "field-map"),
        "Off unless you turn it on: a matter of taste that gets expensive later.",
    ),
    (("map-values-added",), "Nothing to do, unless readers assume a closed set of keys."),
    (("map-values-removed",), "Keep the map, or name every key that is in use as a property."),
    (
        ("type-widened",),
        "Teach readers and generated clients the new type before a client writes it.",
    ),
    (
        ("type-changed",),
        "Add a field of the new type beside the old one, or change it in a new version.",
    ),
    (
        ("format-renamed",),
        "Nothing to do for the server; generated clients may change their types.",
    ),
    (BOUNDS_LOOSEN, "Nothing to do for writers. Readers may meet values they never saw before."),
    (
        ("enum-value-added",),
        "Make sure every reader has a branch for values it does not know, then add it.",
    ),
    (("enum-removed",), "As for a new value: readers need a branch for anything."),
    (
        ("required-removed",),
        "Readers must cope with the field missing; a default keeps it always there.",
    ),
    (("required-added",), "Give it a default, or make it required in a new version only."),
    (("pattern-removed",), "Nothing to do for writers. Readers may meet texts they never saw."),
    (("pattern-changed",), "Weighs less when no text is found that only the old pattern takes."),
    (("nullable-added",), "Readers must cope with null."),
    (("default-added",), "Rewrite objects that mean something else by leaving the field out."),
    (
        DEFAULT_CHANGES,
        "Rewrite all objects under the old CRD first (instar migrate): that writes the old "
        "default out.",
    ),
    (
        LIST_TYPE_CHANGES,
        "Change it in a new version, or while no client applies; make sure no list has duplicates.",
    ),
    (("map-type-changed",), "Every applier has to apply once more afterwards."),
    (("unique-items-removed",), "Nothing to do for writers."),
    (("preserve-unknown-added",), "Describe the fields instead: nothing checks what is kept."),
    (
        ("preserve-unknown-removed",),
        "Describe everything that is in use first; --objects shows what would be pruned.",
    ),
    (("preserve-unknown-fields-enabled",), "Open single fields instead of the whole CRD."),
    (
        ("preserve-unknown-fields-disabled",),
        "Describe everything that is in use first; --objects shows what would be pruned.",
    ),
    (
        ("embedded-resource-added", "embedded-resource-removed"),
        "Try the stored objects (--objects); embedded checks forgive nothing.",
    ),
    (("docs-changed",), "Nothing to do. Turn it on to review wording."),
    (("rule-removed",), "Nothing to do for writers."),
    (("rule-text-changed",), "Nothing to do, unless a client matches on the message."),
    (
        RULES_TIGHTEN,
        "Existing objects are forgiven as long as the place is not touched. Warn first, tighten a "
        "release later; --objects lists the objects that break it.",
    ),
    (("version-added",), "Serve it for a release before anything is stored in it."),
    (("version-served",), "Nothing to do."),
    (("version-deprecated",), "Tell users what to use instead in deprecationWarning."),
    (("deprecation-changed",), "Nothing to do."),
    (
        VERSION_REMOVALS,
        "Deprecate it, wait until no client requests it (instar versions), unserve it, and remove "
        "it a release later.",
    ),
    (
        ("storage-version-changed",),
        "Migrate all objects (instar migrate) before the old version is removed.",
    ),
    (
        ("stored-version-removed",),
        "Migrate and prune status.storedVersions first (instar migrate).",
    ),
    (("scope-changed", "kind-changed"), "Make it a new CRD: this cannot change."),
    (("list-kind-changed",), "Generated clients have to be generated again."),
    (
        NAMES_CHANGE,
        "Announce it to users of kubectl.",
    ),
    (
        ("subresource-status-added", "subresource-scale-added"),
        "Change the controller to use the new endpoint at the same time.",
    ),
    (
        ("subresource-status-removed", "subresource-scale-removed", "subresource-scale-changed"),
        "Keep it: controllers, autoscalers and kubectl depend on it.",
    ),
    (
        ("printer-column-removed", "printer-column-added", "printer-column-changed"),
        "Nothing to do, unless a script parses kubectl's output.",
    ),
    (("selectable-field-added",), "Nothing to do."),
    (
        ("selectable-field-removed",),
        "Find the clients that select by it: their lists and watches fail.",
    ),
    (("conversion-webhook-unneeded",), "Use strategy None until the schemas differ."),
    (
        ("conversion-none-loses", "conversion-none-differs"),
        "Use a conversion webhook (instar webhook), or make the schemas equal.",
    ),
    (
        ("conversion-loses",),
        "Find every loss with instar check; keep what does not fit with keep().",
    ),
    (("conversion-fails",), "Let the converter write only what the other version takes."),
    (
        (
            "conversion-strategy-changed",
            "conversion-webhook-changed",
            "conversion-review-versions-changed",
        ),
        "Prove the converter with instar check before the change.",
    ),
    (
        ("crd-removed",),
        "Keep it until no cluster has objects of it; then remove it in a release that says so.",
    ),
    (("crd-refused",), "Correct it: it cannot be installed like this."),
    (("unknown-crd-field",), "Correct the spelling or leave it out."),
    (("unpruned-crd",), "Set spec.preserveUnknownFields to false and describe every field."),
    (
        ("open-root", "open-field", "open-embedded-resource"),
        "Describe the fields; keep open only what really is arbitrary.",
    ),
    (("status-without-subresource",), "Add subresources.status."),
    (("list-type-missing",), "Say x-kubernetes-list-type: atomic, set or map."),
    (("conditions-shape",), "Make it a map list with the key type."),
    (("unclaimed-change",), "Read the change yourself, and tell us: a rule is missing."),
    (("metadata-changed",), "Nothing to do."),
    (("stored-objects-break",), "Repair or migrate the listed objects before the CRD is applied."),
    (("suppression-expired",), "Decide again: fix it, or give it a new date and a reason."),
    (("suppression-unused",), "Remove it."),
    (
        (*BOUNDS_TIGHTEN, *VALUES_SHRINK, "unique-items-added"),
        "Warn first and tighten a release later, or tighten in a new version only; --objects "
        "lists the stored objects that break it.",
    ),
)
_BY_RULE = {rule: text for rules, text in _ADVICE for rule in rules}


def advice(rule: str) -> str:
    return _BY_RULE[rule]
