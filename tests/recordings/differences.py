"""Where instar does not answer as kube-apiserver did: reason → scenario → numbers of its steps.

``test_recordings.py`` fails for a difference that is not listed, and for a listed one that is gone.
"""

from __future__ import annotations

from collections.abc import Mapping

Listed = Mapping[str, Mapping[str, str]]

DECIDED: Listed = {
    "redirects of webhooks are failures (docs/reference/differences.md)": {
        "hooks-validating": "075",
        "hooks-mutating": "075",
        "fault-redirect": "004 005 006",
    },
    "a dry-run create does not echo resourceVersion (docs/reference/differences.md)": {
        "crd-metadata": "017",
        "metadata-custom": "072 073",
        "metadata-builtin": "070 071",
    },
    "apiextensions.k8s.io/v1beta1 is served (docs/reference/differences.md)": {
        "discovery": "036",
    },
    "upstream crashes on protobuf for a custom resource (docs/reference/differences.md)": {
        "bodies": "088",
    },
}
"""Meant so, and documented."""

OPEN: Listed = {
    "admission: text of an answer that is cut": {
        "hooks-validating": "081",
        "hooks-mutating": "081",
    },
    "an apply body that is no mapping: another text": {
        "apply-refusals": "009 010",
    },
    "emptied managedFields are taken as a reset although the list is empty": {
        "apply-histories": "011 012 013 014 015 016",
    },
    "a wrong JSON type: the text names string, not the Go type (v1.ServiceType)": {
        "fault-response-is-text": "004 005 006",
        "patch-json": "135 136",
        "patch-strategic": "046",
    },
    "built-in kinds: other refusals, not yet looked at one by one": {
        "kind-apps-daemonsets": "002",
        "kind-apps-controllerrevisions": "005",
        "kind-resource-deviceclasses": "016 018 019",
    },
    "pods: the difference quoted in a refused change is written otherwise": {
        "kind-core-pods": "029 041",
    },
    "conversion: texts of answers that are no ConversionReview or no objects": {
        "fault-wrong-review-kind": "004 005 006",
        "fault-no-object-kind": "004 005 006",
        "fault-not-json": "004 005 006",
    },
    "a wrong type in metadata.name of a CRD lacks the path metadata. in the text": {
        "crd-names": "096 100 104 108",
    },
    "CRD: a default beside oneOf of int-or-string": {
        "schema-structures": "047",
    },
    "DeleteOptions of an unknown version are refused": {
        "deleting-free": "053",
        "deleting-held": "128 129 130 131",
        "deleting-maps-free": "051",
        "deleting-maps-held": "126 127 128 129",
    },
    "a Scale that cannot be read: another text": {
        "parts": "046 052 061 062 072",
    },
    "a scale whose object is quoted in a refusal is written otherwise": {
        "parts-builtin": "003 015 027",
    },
    "discovery: groups (apiregistration.k8s.io), storageVersionHash, order of subresources": {
        "discovery": "006 005",
    },
    "impersonation of an empty user name is refused": {
        "access": "048",
    },
    "a limited list by label has no continue although more follows in the keys": {
        "paging": "033",
    },
    "a watch with continue is not refused": {
        "watching": "030",
        "watching-maps": "028",
    },
    "JSON patch: odd indices, null documents, moves of what is absent, identity lost": {
        "patch-json": "015 016 031 032 035 036 059 060 083 084 101 102 129 130 151 152 171 172",
        "patch-texts": "018 019",
        "patch-random": "010 017 018 019 020 075 112",
    },
    "merge patch: identity fields set to null, nulls in lists": {
        "patch-merge": "012 053 054 055",
    },
    "strategic merge patch: warnings and texts": {
        "patch-strategic": "060 078 085 087 091 092 099 100",
        "patch-service": "011 012 021 022",
    },
    "a field that is unknown is not warned about when the body names another kind": {
        "bodies": "028",
    },
    "a body with a lone surrogate or an endless number is refused earlier": {
        "bodies": "042 043 044 045",
    },
    "paths of no known resource are answered as text instead of a Status": {
        "paths": "017",
    },
    "ComponentStatus: the resource in a 404": {
        "paths": "035",
    },
    "names with a percent sign or slash in the path are read otherwise": {
        "paths": "038 039 042",
    },
    "a storage key in a conflict's text begins with /registry": {
        "metadata-custom": "119",
        "metadata-builtin": "117",
    },
    "generation, selfLink of a created or replaced ConfigMap are dropped": {
        "metadata-builtin": "072 121",
    },
    "a patch of a ControllerRevision is taken although upstream compares the bytes of its data": {
        "matrix-apps-v1-controllerrevisions": "002 003 004 005 006 007 008 009 010 011",
    },
}
"""Not meant: each is to be mended, then its line goes."""
