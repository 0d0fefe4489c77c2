"""Strategy and table columns of StorageVersionMigration; rules and messages are upstream's.

``builtin_resources.py`` makes the strategy, and the verbs call it;
``server/registry/controllers/migrations.py`` runs the migrations.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from instar.base.field_errors import FieldError, FieldErrorType, invalid, required
from instar.base.json_values import Object, same_json
from instar.kube.api.jsonpath_steps import Work
from instar.kube.api.patch_types import OF_BUILTIN
from instar.kube.api.string_rules import dns1035_label, dns1123_subdomain
from instar.kube.schema.pipeline import Warn
from instar.server.registry.resources.columns import TablePrinter
from instar.server.registry.resources.strategy import Strategy

if TYPE_CHECKING:
    from instar.server.registry.resources.serving import VersionServing

GROUP = "storagemigration.k8s.io"
PLURAL = "storageversionmigrations"
RUNNING, SUCCEEDED, FAILED = "Running", "Succeeded", "Failed"
PAUSED = "instar.dev/paused"
"""Annotation: while it is ``true``, the migration rewrites nothing more."""
_RESOURCE = "spec.resource.resource"


def condition_is_true(obj: Object, type: str) -> bool:
    status = obj.get("status") or {}
    return any(
        item.get("type") == type and item.get("status") == "True"
        for item in status.get("conditions") or ()
    )


def is_paused(obj: Object) -> bool:
    annotations = obj["metadata"].get("annotations") or {}
    return bool(annotations.get(PAUSED) == "true")


def is_terminal(obj: Object) -> bool:
    return condition_is_true(obj, SUCCEEDED) or condition_is_true(obj, FAILED)


class MigrationStrategy(Strategy):
    unconditional_update = True
    keeps_nulls = False
    patch_types = OF_BUILTIN

    def prepare_create(self, obj: Object, version: VersionServing) -> None:
        super().prepare_create(obj, version)
        obj["metadata"].pop("generation", None)

    def prepare_update(self, new: Object, old: Object, version: VersionServing) -> None:
        super().prepare_update(new, old, version)
        # Upstream keeps no generation; annotating a running migration must not lower a stored one.
        new["metadata"].pop("generation", None)
        if "generation" in old["metadata"]:
            new["metadata"]["generation"] = old["metadata"]["generation"]

    def check_create(self, obj: Object, version: VersionServing, warn: Warn) -> list[FieldError]:
        found = super().check_create(obj, version, warn)
        misshapen = [error for error in found if error.kind is not FieldErrorType.REQUIRED]
        if misshapen:
            return found  # the rules below are about values of the right type
        return [error for error in found if error.field != _RESOURCE] + _spec_errors(obj)

    def check_update(
        self, new: Object, old: Object, version: VersionServing, subresource: str, warn: Warn
    ) -> list[FieldError]:
        found = super().check_update(new, old, version, subresource, warn)
        if found:
            return found
        if subresource == "status":
            return _status_errors(new, old)
        if not same_json(new.get("spec"), old.get("spec")):
            shown = {"Resource": (new.get("spec") or {}).get("resource") or {}}
            found.append(invalid("spec", shown, "field is immutable"))
        return found


class MigrationPrinter(TablePrinter):
    """Columns: name, resource, and the latest true condition."""

    def __init__(self) -> None:
        super().__init__(())
        described = {"Resource": "What is migrated.", "Status": "How it stands."}
        self.definitions = [
            self.definitions[0],
            *(
                {"name": name, "type": "string", "format": "", "description": text, "priority": 0}
                for name, text in described.items()
            ),
        ]

    def cells(self, obj: Object, now: datetime, work: Work | None = None) -> list[Any]:
        asked = (obj.get("spec") or {}).get("resource") or {}
        shown = ".".join(part for part in (asked.get("resource"), asked.get("group")) if part)
        true = [kind for kind in (RUNNING, SUCCEEDED, FAILED) if condition_is_true(obj, kind)]
        return [obj["metadata"].get("name", ""), shown, true[-1] if true else "Unknown"]


def _spec_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    asked = spec.get("resource") or {}
    group, resource = asked.get("group") or "", asked.get("resource") or ""
    if not resource:
        return [required(_RESOURCE, "resource is required to be set")]
    found = [invalid(_RESOURCE, resource, text) for text in dns1035_label(resource)]
    if group:
        found += [invalid("spec.resource.group", group, text) for text in dns1123_subdomain(group)]
    return found


def _status_errors(new: Object, old: Object) -> list[FieldError]:
    found: list[FieldError] = []
    revision = (new.get("status") or {}).get("resourceVersion") or ""
    before = (old.get("status") or {}).get("resourceVersion") or ""
    field = "status.resourceVersion"
    if revision and not (revision.isascii() and revision.isdigit()):
        found.append(invalid(field, revision, "resource version is not well formed"))
    if before and revision != before:
        found.append(invalid(field, revision, "field is immutable"))
    conditions = (new.get("status") or {}).get("conditions")
    field = "status.conditions"
    if condition_is_true(new, SUCCEEDED) and condition_is_true(new, FAILED):
        text = "Both success and failed conditions cannot be true at the same time"
        found.append(invalid(field, conditions, text))
    for type, word in ((SUCCEEDED, "Success"), (FAILED, "Failed")):
        if condition_is_true(old, type) and not condition_is_true(new, type):
            text = f"{word} condition cannot be set to false once it is true"
            found.append(invalid(field, conditions, text))
    return found
