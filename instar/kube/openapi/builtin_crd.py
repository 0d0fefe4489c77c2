"""Hand-written schema of CustomResourceDefinition v1beta1, which current Kubernetes no longer has.

Used by ``server/registry/kinds/builtin_resources.py``. The schema inside a CRD is recursive, which
a structural schema cannot express: there it is open, and published documents refer to the v1 model
of ``kube/facts``.
"""

from __future__ import annotations

from instar.base.json_values import Object
from instar.kube.openapi.builtin_fields import (
    ATOMIC_LIST,
    bytes_schema,
    legacy_condition_schema,
    root_schema,
)
from instar.kube.openapi.naming import model_name
from instar.kube.openapi.published import MODEL_KEY
from instar.kube.openapi.schema_literals import (
    anything,
    array,
    boolean,
    integer,
    list_by,
    obj,
    text,
    texts,
)

_JSON_SCHEMA = model_name("apiextensions.k8s.io", "v1", "JSONSchemaProps", builtin=True)


def _names(description: str) -> Object:
    return obj(
        description,
        {
            "categories": texts("Groups such as `all` it is listed under.", **ATOMIC_LIST),
            "kind": text("Its kind, in CamelCase."),
            "listKind": text("The kind of its lists; by default kind and List."),
            "plural": text("Its name in URLs."),
            "shortNames": texts("Abbreviations for command lines.", **ATOMIC_LIST),
            "singular": text("Its name for one object; by default kind in lower case."),
        },
        "plural",
        "kind",
    )


def _column() -> Object:
    return obj(
        "A column of tables.",
        {
            "JSONPath": text("JSON path of the value."),
            "description": text("What the column shows."),
            "format": text("OpenAPI format of the value."),
            "name": text("Heading of the column."),
            "priority": integer("0 is always shown; others only in wide tables."),
            "type": text("OpenAPI type of the value."),
        },
        "name",
        "type",
        "JSONPath",
    )


def _validation() -> Object:
    return obj(
        "Schema of the objects.",
        {"openAPIV3Schema": anything("The schema.", **{MODEL_KEY: _JSON_SCHEMA})},
    )


def _subresources() -> Object:
    return obj(
        "Subresources of the objects.",
        {
            "scale": obj(
                "The number of replicas as a resource of its own.",
                {
                    "labelSelectorPath": text("JSON path of the label selector."),
                    "specReplicasPath": text("JSON path of the desired number."),
                    "statusReplicasPath": text("JSON path of the actual number."),
                },
                "specReplicasPath",
                "statusReplicasPath",
            ),
            "status": anything("Status is written separately from the rest."),
        },
    )


def _selectable() -> Object:
    field = obj("A field.", {"jsonPath": text("JSON path of the field.")}, "jsonPath")
    return array(field, "Fields usable in field selectors.", **ATOMIC_LIST)


def _client() -> Object:
    return obj(
        "How to reach the webhook: url or service.",
        {
            "caBundle": bytes_schema("Certificates to verify the webhook with."),
            "service": obj(
                "A service that runs the webhook.",
                {
                    "name": text("Name of the service."),
                    "namespace": text("Namespace of the service."),
                    "path": text("Path of the webhook."),
                    "port": integer("Port of the service; by default 443."),
                },
                "namespace",
                "name",
            ),
            "url": text("Address of the webhook."),
        },
    )


def _review_versions() -> Object:
    return texts("Versions of ConversionReview that the webhook supports.", **ATOMIC_LIST)


def _version_fields() -> Object:
    return {
        "deprecated": boolean("Whether clients of the version get a warning."),
        "deprecationWarning": text("Text of the warning."),
        "name": text("Name of the version, for example v1."),
        "schema": _validation(),
        "selectableFields": _selectable(),
        "served": boolean("Whether the version is served."),
        "storage": boolean("Whether objects are stored in it; true for exactly one."),
        "subresources": _subresources(),
    }


def _columns() -> Object:
    return array(_column(), "Columns of tables.", **ATOMIC_LIST)


def _version() -> Object:
    columns = {"additionalPrinterColumns": _columns()}
    return obj(
        "A version of the resource.", {**columns, **_version_fields()}, "name", "served", "storage"
    )


def _status() -> Object:
    return obj(
        "Observed state of the definition.",
        {
            "acceptedNames": _names("The accepted names."),
            "conditions": array(
                legacy_condition_schema("One condition of the definition.", generation=True),
                "Conditions of the definition.",
                **list_by("type"),
            ),
            "observedGeneration": integer(
                "The generation that the controllers have processed.", 64
            ),
            "storedVersions": texts("Versions objects may be stored in.", **ATOMIC_LIST),
        },
    )


def _spec_fields() -> Object:
    return {
        "group": text("The group of the resource."),
        "names": _names("The names of the resource."),
        "preserveUnknownFields": boolean("Deprecated: keep unknown fields."),
        "scope": text("Namespaced or Cluster."),
        "versions": array(_version(), "The versions of the resource.", **ATOMIC_LIST),
    }


_STRATEGY = text("None changes only apiVersion; Webhook calls a webhook.")

CRD_V1BETA1 = root_schema(
    "A new kind of resource for this server; v1 is the form to use.",
    {
        "spec": obj(
            "Desired state of the definition.",
            {
                **_spec_fields(),
                "additionalPrinterColumns": _columns(),
                "conversion": obj(
                    "How versions are converted.",
                    {
                        "conversionReviewVersions": _review_versions(),
                        "strategy": _STRATEGY,
                        "webhookClientConfig": _client(),
                    },
                    "strategy",
                ),
                "selectableFields": _selectable(),
                "subresources": _subresources(),
                "validation": _validation(),
                "version": text("Deprecated: the first of versions."),
            },
            "group",
            "names",
            "scope",
        ),
        "status": _status(),
    },
    "spec",
)
