"""Where instar does not answer as kube-apiserver did: reason → scenario → numbers of its steps.

``test_recordings.py`` fails for a difference that is not listed, and for a listed one that is gone.
"""

from __future__ import annotations

from collections.abc import Mapping

Listed = Mapping[str, Mapping[str, str]]

DECIDED: Listed = {
    "redirects of webhooks are failures (docs/differences.md)": {
        "hooks-validating": "075",
        "hooks-mutating": "075",
        "fault-redirect": "004 005 006",
    },
    "a dry-run create does not echo resourceVersion (docs/differences.md)": {
        "crd-metadata": "017",
        "metadata-custom": "072 073",
        "metadata-builtin": "070 071",
    },
    "apiextensions.k8s.io/v1beta1 is served (docs/differences.md)": {
        "discovery": "036",
    },
    "upstream's handler crashes on protobuf for a custom resource (docs/differences.md)": {
        "bodies": "088",
    },
}
"""Meant so, and documented."""

OPEN: Listed = {
    "admission: text of an answer that is cut": {
        "hooks-validating": "081",
        "hooks-mutating": "081",
        "mutating-policies": "006 011",
    },
    "an apply body that is no mapping: another text": {
        "apply-refusals": "009 010",
    },
    "emptied managedFields are taken as a reset although the list is empty": {
        "apply-histories": "011 012 013 014 015 016",
    },
    "a wrong JSON type: the text names string, not the Go type (v1.ServiceType)": {
        "kind-core-services": "035 037",
        "kind-core-limitranges": "019 020 026 031",
        "kind-core-resourcequotas": "010 011 023",
        "kind-core-persistentvolumeclaims": "013 019 020",
        "kind-core-pods": "049 055 056 064 065 085 125 131 145",
        "kind-apps-statefulsets": "073 080",
        "kind-apps-daemonsets": "049",
        "kind-batch-jobs": "049",
        "kind-batch-cronjobs": "049",
        "kind-autoscaling-horizontalpodautoscalers": "035 047",
        "kind-policy-poddisruptionbudgets": "023",
        "kind-networking-ingresses": "037 038 044 049 053 055 056 062",
        "kind-core-nodes": "025",
        "kind-core-persistentvolumes": "010 011 023 028 029 035",
        "kind-storage-storageclasses": "011 013",
        "kind-storage-csidrivers": "023",
        "kind-scheduling-priorityclasses": "013",
        "kind-node-runtimeclasses": "013",
        "kind-flowcontrol-prioritylevelconfigurations": "011 023",
        "kind-flowcontrol-flowschemas": "023 037",
        "kind-admissionregistration-validatingwebhookconfigurations": "023 047",
        "kind-admissionregistration-mutatingwebhookconfigurations": "035 047 059 061",
        "fault-response-is-text": "004 005 006",
        "patch-json": "135 136",
        "patch-strategic": "046",
    },
    "the object in the answer to a deletion has the revision before it": {
        "kind-core-services": "039",
        "kind-core-serviceaccounts": "018",
        "kind-core-podtemplates": "033",
        "kind-resource-resourceclaims": "033",
        "kind-storage-storageclasses": "030",
        "kind-storage-csidrivers": "033",
        "kind-storage-volumeattachments": "021",
        "kind-storage-csinodes": "033",
        "kind-resource-deviceclasses": "021",
    },
    "reads of Endpoints do not warn of the deprecation": {
        "kind-core-endpoints": "001 002 010 011 013 017 023 026 028 033",
    },
    "a quota whose scopes do not fit its resources is accepted": {
        "kind-core-resourcequotas": "000 001 002 004 005 012 013 014 016 020 024",
    },
    "built-in kinds: other refusals, not yet looked at one by one": {
        "kind-core-persistentvolumeclaims": "004 011",
        "kind-core-events": "003 004 006 007 018 019",
        "kind-core-pods": "004 104",
        "kind-apps-statefulsets": "034 059 060 061 063 064 065 066 069 070 071 072 075 078 079 081",
        "kind-apps-daemonsets": "002 004",
        "kind-apps-controllerrevisions": "004 005 010",
        "kind-autoscaling-horizontalpodautoscalers": "028 032 033 042 043 045 063",
        "kind-networking-ingresses": "040 043 047 059 064",
        "kind-networking-networkpolicies": "013 055",
        "kind-coordination-leases": "017",
        "kind-discovery-endpointslices": "029",
        "kind-events-events": "003 004 007 014 027 032 038 039 040 041",
        "kind-resource-resourceclaims": "014 016 018 019 020 023 026",
        "kind-core-persistentvolumes": "034",
        "kind-storage-csidrivers": "016 019 022",
        "kind-networking-ingressclasses": "004 017",
        "kind-flowcontrol-prioritylevelconfigurations": "003 004 006 007 009 014 018 021",
        "kind-flowcontrol-flowschemas": "041 042 043 050 057 058 060 063 065 066 069 070 072 074",
        "kind-resource-deviceclasses": "016 018 019",
        "kind-admissionregistration-validatingwebhookconfigurations": "049 059 061",
        "kind-admissionregistration-mutatingwebhookconfigurations": "071 073",
    },
    "an empty value is quoted as null instead of {}, [] or an empty text": {
        "kind-core-replicationcontrollers": "025 027",
        "kind-apps-deployments": "030",
        "kind-apps-replicasets": "030",
        "kind-apps-statefulsets": "032 033",
        "kind-apps-daemonsets": "025 027",
        "kind-networking-ingresses": "029 030",
        "kind-events-events": "017 026",
        "kind-core-persistentvolumes": "012",
        "crd-versions": "008",
        "crd-changes": "012",
    },
    "pods: the difference quoted in a refused change is written otherwise": {
        "kind-core-pods": (
            "014 017 020 026 029 032 038 041 050 059 062 077 080 086 089 092 110 "
            "113 116 122 134 137 140 146 149 152"
        ),
        "parts-builtin": "050 052",
    },
    "jobs: a change of the template also judges the selector": {
        "kind-batch-jobs": "004 017 020 032 038 041 044 050",
    },
    "conversion: texts of answers that are no ConversionReview or no objects": {
        "fault-wrong-review-kind": "004 005 006",
        "fault-no-object-kind": "004 005 006",
        "fault-not-json": "004 005 006",
    },
    "a wrong type in metadata.name of a CRD lacks the path metadata. in the text": {
        "crd-names": "096 100 104 108",
    },
    "CRD: a column without a type: the allowed ones are not named": {
        "crd-parts": "002 021 023 024",
    },
    "CRD: generateName is not judged": {
        "crd-metadata": "016",
    },
    "CRD: an empty $ref is accepted": {
        "schema-string": "032",
        "schema-number": "032",
        "schema-array": "032",
    },
    "CRD: an unknown list type on what is no array: the second error is missing": {
        "schema-integer": "049",
        "schema-boolean": "049",
        "schema-object": "049",
    },
    "CRD: a default beside oneOf of int-or-string": {
        "schema-structures": "047",
    },
    "a MAC address without separators is refused": {
        "formats": "029",
    },
    "DeleteOptions of an unknown version are refused": {
        "deleting-free": "051 053",
        "deleting-held": "123 124 125 126 128 129 130 131",
        "deleting-maps-free": "049 051",
        "deleting-maps-held": "121 122 123 124 126 127 128 129",
    },
    "a status that is no object: the replicas path is not judged as well": {
        "parts": "030 031 034 035",
    },
    "a Scale that cannot be read: another text": {
        "parts": "046 052 061 062 072",
    },
    "a scale whose object is quoted in a refusal is written otherwise": {
        "parts-builtin": "003 015 027",
    },
    "a status with more ready replicas than replicas, or a wrong pod IP, is accepted": {
        "parts-builtin": "019 020 021 022 023 031 032 033 034 035 040 041 042",
    },
    "an evicted pod is gone after the next patch, before its grace period ends": {
        "parts-builtin": "048 049 051 053 054",
    },
    "an update says an error of metadata fewer times than upstream does": {
        "crd-changes": "019",
        "patch-strategic": "070",
        "metadata-builtin": (
            "083 084 085 086 087 088 089 090 091 093 094 096 097 099 100 104 106 107 108 109 113"
        ),
    },
    "discovery: groups (apiregistration.k8s.io), storageVersionHash, order of subresources": {
        "discovery": "006 005 013 031 037 041 047",
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
        "patch-json": (
            "015 016 031 032 035 036 059 060 083 084 101 102 113 114 129 130 151 152 171 172"
        ),
        "patch-texts": "018 019",
        "patch-random": "010 017 018 019 020 075 112",
    },
    "merge patch: identity fields set to null, nulls in lists": {
        "patch-merge": "012 053 054 055 067 068",
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
        "paths": "017 020 021 022 023 030 032 033 037 045 049 053 057 061 068",
    },
    "ComponentStatus: the resource in a 404": {
        "paths": "035",
    },
    "names with a percent sign or slash in the path are read otherwise": {
        "paths": "038 039 042",
    },
    "finalizers that are refused are warned about, too": {
        "metadata-custom": "053 054",
    },
    "a storage key in a conflict's text begins with /registry": {
        "metadata-custom": "119",
        "metadata-builtin": "117",
    },
    "generation, selfLink of a created or replaced ConfigMap are dropped": {
        "metadata-builtin": "072 121",
    },
}
"""Not meant: each is to be mended, then its line goes."""
