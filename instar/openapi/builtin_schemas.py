"""Schemas of the built-in resources the server offers beside custom ones, by kind.

Structural, so they serve two masters: the published documents, and pruning and validation of the
objects themselves. Hence every field of the v1 types is listed, and moments are nullable because
Go clients write an unset one as null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from instar.openapi.builtin_crd import CRD_V1, CRD_V1BETA1
from instar.openapi.builtin_events import CORE_EVENT, EVENT
from instar.openapi.builtin_fields import (
    ATOMIC_LIST,
    condition,
    data,
    kind_of_object,
    local_reference,
    loose_condition,
    object_reference,
    precise_moment,
)
from instar.openapi.builtin_reviews import (
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
)
from instar.openapi.builtin_service import SERVICE
from instar.openapi.shapes import (
    array,
    boolean,
    integer,
    list_by,
    mapping,
    obj,
    text,
    text_map,
    texts,
)

_CONFIG_MAP = kind_of_object(
    "Configuration for others to read, as texts or bytes.",
    {
        "binaryData": mapping(data(), "Bytes by key, in base64."),
        "data": text_map("Texts by key; a key may not be in binaryData too."),
        "immutable": boolean("Once true, only metadata can change."),
    },
)

_SECRET = kind_of_object(
    "Secret data of a limited size.",
    {
        "data": mapping(data(), "Bytes by key, in base64."),
        "immutable": boolean("Once true, only metadata can change."),
        "stringData": text_map("Texts to be written into data; never returned."),
        "type": text("What the secret is for.", default="Opaque"),
    },
)

_NAMESPACE = kind_of_object(
    "A scope for names.",
    {
        "spec": obj(
            "How the namespace behaves.",
            {"finalizers": texts("What must be done before it goes away.", **ATOMIC_LIST)},
        ),
        "status": obj(
            "State of the namespace.",
            {
                "conditions": array(
                    loose_condition("One thing seen about the namespace."),
                    "What was seen about the namespace.",
                    **list_by("type", merge="type"),
                ),
                "phase": text("Active or Terminating."),
            },
        ),
    },
)

_SERVICE_ACCOUNT = kind_of_object(
    "An identity for processes.",
    {
        "automountServiceAccountToken": boolean("Whether pods get its token as a file."),
        "imagePullSecrets": array(
            local_reference("A secret."), "Secrets used to pull images.", **ATOMIC_LIST
        ),
        "secrets": array(
            object_reference("A secret."),
            "Secrets its pods may use.",
            **list_by("name", merge="name"),
        ),
    },
)

_LEASE = kind_of_object(
    "A claim that is held for a time, for example leadership.",
    {
        "spec": obj(
            "Who holds the lease, and for how long.",
            {
                "acquireTime": precise_moment("When the holder got the lease."),
                "holderIdentity": text("Who holds the lease."),
                "leaseDurationSeconds": integer("How long a claim lasts after renewTime."),
                "leaseTransitions": integer("How often the holder changed."),
                "preferredHolder": text("Who should hold it next."),
                "renewTime": precise_moment("When the holder last renewed the lease."),
                "strategy": text("How the leader is chosen, in coordinated election."),
            },
        )
    },
)

_STORAGE_VERSION_MIGRATION = kind_of_object(
    "A request to rewrite the stored objects of a resource at its storage version.",
    {
        "spec": obj(
            "What to migrate.",
            {
                "resource": obj(
                    "The resource to migrate.",
                    {"group": text("Its group."), "resource": text("Its plural name.")},
                    "resource",
                )
            },
            "resource",
        ),
        "status": obj(
            "How far it got.",
            {
                "conditions": array(
                    condition("One thing seen about the migration."),
                    "What was seen about the migration.",
                    **list_by("type", merge="type"),
                ),
                "resourceVersion": text("Objects newer than this need no migration."),
            },
        ),
    },
)

SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "ConfigMap": _CONFIG_MAP,
    "CustomResourceDefinition": CRD_V1,
    "CustomResourceDefinition/v1beta1": CRD_V1BETA1,
    "Event": CORE_EVENT,
    "Event.events.k8s.io": EVENT,
    "Lease": _LEASE,
    "Namespace": _NAMESPACE,
    "Secret": _SECRET,
    "SelfSubjectAccessReview": SELF_SUBJECT_ACCESS_REVIEW,
    "SelfSubjectReview": SELF_SUBJECT_REVIEW,
    "SelfSubjectRulesReview": SELF_SUBJECT_RULES_REVIEW,
    "Service": SERVICE,
    "ServiceAccount": _SERVICE_ACCOUNT,
    "StorageVersionMigration": _STORAGE_VERSION_MIGRATION,
}
"""By kind; where a kind has two schemas, the second one is qualified by group or version."""
