"""Schemas of what the server offers and the facts do not have, by hand.

Structural, so they serve two masters: the published documents, and the fields that are owned.
"""

from __future__ import annotations

from instar.kube.openapi.builtin_fields import condition, kind_of_object
from instar.kube.openapi.schema_literals import array, list_by, obj, text

STORAGE_VERSION_MIGRATION = kind_of_object(
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
