"""Where instar does not answer as kube-apiserver did: reason → scenario → numbers of its steps.

``test_recordings.py`` fails for a difference that is not listed, and for a listed one that is gone.
"""

from __future__ import annotations

from collections.abc import Mapping

Listed = Mapping[str, Mapping[str, str]]

DECIDED: Listed = {
    "redirects of webhooks are failures": {
        "hooks-validating": "075",
        "hooks-mutating": "075",
        "fault-redirect": "004 005 006",
    },
    "a dry-run create does not echo resourceVersion": {
        "crd-metadata": "017",
        "metadata-custom": "072 073",
        "metadata-builtin": "070 071",
    },
    "apiextensions.k8s.io/v1beta1 is served": {
        "discovery": "036",
    },
    "storagemigration.k8s.io is served": {
        "discovery": "006",
    },
    "upstream crashes on protobuf for a custom resource": {
        "bodies": "088",
    },
    "a patch that removes apiVersion is invalid, not an internal error": {
        "patch-merge": "055",
    },
    "an object that an error quotes: order of its fields, managedFields of a Scale, spaces, null": {
        "patch-strategic": "078 100",
        "parts-builtin": "003 015 027",
        "kind-core-pods": "029 041",
        "fault-no-object-kind": "004 005 006",
    },
    "the reason why a Scale cannot be read is told": {
        "parts": "046 052 061 062",
    },
    "a table of DaemonSets shows the annotation that its objects show": {
        "kind-apps-daemonsets": "002",
    },
    "a patch of a ControllerRevision is accepted where upstream compares the bytes of its data": {
        "kind-apps-controllerrevisions": "005",
        "matrix-apps-v1-controllerrevisions": "002 003 004 005 006 007 008 009 010 011",
    },
    "a default that no object with it could keep is refused in the CRD": {
        "schema-structures": "047",
    },
    "ignoreStoreReadErrorWithClusterBreakingPotential is known": {
        "deleting-free": "053",
        "deleting-held": "128 129 130 131",
        "deleting-maps-free": "051",
        "deleting-maps-held": "126 127 128 129",
    },
    "a list by label whose last match is on the page has no continue token": {
        "paging": "033",
    },
    "a body of another version does not have its fields called unknown": {
        "bodies": "028",
    },
    "half a surrogate pair and a number beyond float64 are refused wherever they stand": {
        "bodies": "042 043 044 045",
    },
    "empty segments, dots, encoded slashes and bad escapes in paths": {
        "paths": "017 038 039 042",
    },
    "generation and selfLink that a client sends for a ConfigMap are dropped": {
        "metadata-builtin": "072 121",
    },
}
"""Decisions: docs/reference/differences.md has a line for each."""

OPEN: Listed = {}
"""Not meant: each is to be mended, then its line goes."""
