"""Hand-written schemas of served kinds that ``kube/facts`` does not have.

Used by ``server/registry/kinds/builtin_resources.py``. They are structural, because they are
published in OpenAPI and also used for field ownership.
"""

from __future__ import annotations

from instar.kube.openapi.builtin_fields import condition_schema, root_schema
from instar.kube.openapi.schema_literals import array, list_by, obj, text

STORAGE_VERSION_MIGRATION = root_schema(
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
            "Progress of the migration.",
            {
                "conditions": array(
                    condition_schema("One condition of the migration."),
                    "Conditions of the migration.",
                    **list_by("type", merge="type"),
                ),
                "resourceVersion": text("Objects newer than this need no migration."),
            },
        ),
    },
)
