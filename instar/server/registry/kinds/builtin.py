"""Base strategy of built-in kinds: typed decoding instead of a schema, and common behaviour.

The verbs call it; each special kind has a subclass in the module that ``strategy_table.py`` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.field_errors import FieldError
from instar.base.json_values import Object, same_json
from instar.kube.api.patch_types import OF_BUILTIN
from instar.kube.builtin_rules.advice.by_kind import advice
from instar.kube.facts.messages import message_of
from instar.kube.schema.metadata.object_meta import coerce_metadata_lenient
from instar.kube.schema.metadata.rules import unqualified_errors
from instar.kube.schema.metadata.types import MetaError
from instar.kube.schema.pipeline import (
    Warn,
    decode_metadata,
    keep_member,
    metadata_update_errors,
)
from instar.kube.typed.reading import TypedError, read_object, zero_object
from instar.server.registry.kinds.metadata_checks import status_checks, update_checks
from instar.server.registry.resources.strategy import Strategy

if TYPE_CHECKING:
    from instar.server.registry.resources.serving import VersionServing


class BuiltinStrategy(Strategy):
    """Hooks for kinds: ``default``, ``check``, ``check_change``, ``prepare``; flags below."""

    unconditional_update = True
    scheme = "pkg/api/legacyscheme/scheme.go:30"
    keeps_nulls = False
    piecewise = False
    patch_types = OF_BUILTIN
    counts_generation = False
    """Whether ``metadata.generation`` is kept, and grows with each change of the spec."""
    keeps_new_status = False
    """Whether a status given at creation stays."""
    status_keeps_metadata = False
    """Whether a write to ``/status`` leaves labels, annotations and finalizers alone."""
    status_keeps_labels = False
    judges_change_first = False
    """Whether the errors of ``check_change`` come before those of ``check``."""
    any_finalizer = False
    """Whether a finalizer may have a name without a domain."""

    # Hooks ------------------------------------------------------------------------------------

    def default(self, obj: Object, version: VersionServing) -> None:
        """Apply the version's defaults, in place; also called on objects that are read."""

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        """Return the errors of a new or changed object, except metadata."""
        return []

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        """Return the errors of an update; ``check`` was called before."""
        return []

    def check_status_change(
        self, new: Object, old: Object, version: VersionServing
    ) -> list[FieldError]:
        """Return the errors of a write to ``/status``, where the rest cannot change."""
        return []

    def advise(self, obj: Object, old: Object | None, version: VersionServing) -> list[str]:
        """Return warnings about a valid object that is probably a mistake."""
        return advice(version.kind, obj, old)

    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        """Set what the kind sets by itself before validation; ``old`` is None on creation."""

    # Strategy interface ---------------------------------------------------------------------------

    def clean_metadata(self, obj: Object) -> list[str]:
        return decode_metadata(obj, within=obj.get("kind", ""))

    def unset(self, version: VersionServing) -> Object:
        return zero_object(version.api_version, version.kind)

    def metadata_errors(self, obj: Object, version: VersionServing) -> list[FieldError]:
        found = super().metadata_errors(obj, version)
        return found if self.any_finalizer else [*found, *unqualified_errors(obj["metadata"])]

    def metadata_update_errors(
        self, new: Object, old: Object, version: VersionServing, subresource: str = ""
    ) -> list[FieldError]:
        place = (version.api_version.rpartition("/")[0], version.kind)
        return metadata_update_errors(
            new["metadata"],
            old["metadata"],
            self.name_rule,
            status_checks(place) if subresource == "status" else update_checks(place),
            qualified=not self.any_finalizer,
        )

    def decode(self, obj: Object, version: VersionServing) -> list[str]:
        self.refuse_other_kinds(obj, version)
        try:
            unknown = self.clean_metadata(obj)
            unknown += read_object(obj, version.api_version, version.kind)
        except TypedError as error:
            raise self.undecodable(obj, version, str(error), error.restored) from error
        except MetaError as error:
            raise self.undecodable(obj, version, str(error)) from error
        self.default(obj, version)
        return unknown

    def readmit(self, obj: Object, version: VersionServing) -> None:
        """Decode again; typed kinds drop unknown fields."""
        self.decode(obj, version)

    def refuse_other_kinds(self, obj: Object, version: VersionServing) -> None:
        """Reject an object of another kind, with Go's error."""
        api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
        if (api_version, kind) == (version.api_version, version.kind):
            return
        if message_of(api_version, kind) is None:
            text = f'no kind "{kind}" is registered for version "{api_version}" in scheme '
            raise self.undecodable(obj, version, f'{text}"{self.scheme}"')
        try:
            read_object(obj, api_version, kind)
        except TypedError as error:
            raise self.undecodable(obj, version, str(error)) from error
        theirs = f"{api_version.rpartition('/')[2]}.{kind}"
        group = version.api_version.rpartition("/")[0].partition(".")[0] or "core"
        ours = f"{group}.{version.kind}"
        raise self.undecodable(
            obj, version, f"converting ({theirs}) to ({ours}): unknown conversion"
        )

    def from_storage(self, obj: Object, version: VersionServing) -> None:
        metadata = obj.get("metadata")
        counted = isinstance(metadata, dict) and "generation" in metadata
        obj["metadata"] = coerce_metadata_lenient(metadata)
        if not counted:
            del obj["metadata"]["generation"]
        try:
            read_object(obj, version.api_version, version.kind)
        except TypedError:
            return  # unreadable, written by another program: show it as stored
        self.default(obj, version)

    def after_conversion(self, obj: Object, version: VersionServing) -> None:
        return

    def prepare_create(self, obj: Object, version: VersionServing) -> None:
        obj["metadata"].pop("generation", None)
        if self.counts_generation:
            obj["metadata"]["generation"] = 1
        if version.has_status and not self.keeps_new_status:
            self.reset_status(obj, version)
        self.prepare(obj, None, version)

    def reset_status(self, obj: Object, version: VersionServing) -> None:
        """Reset the status to that of a new object."""
        obj.pop("status", None)
        empty = zero_object(version.api_version, version.kind).get("status")
        if empty is not None:
            obj["status"] = dict(empty)

    def prepare_update(self, new: Object, old: Object, version: VersionServing) -> None:
        version.pipeline.keep_status(new, old)
        self.prepare(new, old, version)
        metadata = new["metadata"]
        metadata.pop("generation", None)
        if self.counts_generation:
            metadata["generation"] = old["metadata"].get("generation", 0)
            if self.is_new_generation(new, old):
                metadata["generation"] += 1

    def is_new_generation(self, new: Object, old: Object) -> bool:
        return bool(not same_json(new.get("spec"), old.get("spec")))

    def prepare_status(self, new: Object, old: Object, version: VersionServing) -> None:
        """Keep all but the status and most metadata: labels, annotations and finalizers may
        change."""
        for name in set(new) | set(old):
            if name not in ("metadata", "status", "apiVersion", "kind"):
                keep_member(new, old, name)
        metadata, present = new["metadata"], old["metadata"]
        if self.status_keeps_metadata:
            managed = metadata.get("managedFields")
            metadata = new["metadata"] = dict(present)
            if managed is not None:
                metadata["managedFields"] = managed
        elif self.status_keeps_labels:
            keep_member(metadata, present, "labels")
        if "generation" in present:
            metadata["generation"] = present["generation"]

    def check_create(self, obj: Object, version: VersionServing, warn: Warn) -> list[FieldError]:
        wrong_type = version.pipeline.type_errors(obj)
        if wrong_type:
            return wrong_type
        found = [*self.metadata_errors(obj, version), *self.check_new(obj, version)]
        self._warn(found, obj, None, version, warn)
        return found

    def check_update(
        self, new: Object, old: Object, version: VersionServing, subresource: str, warn: Warn
    ) -> list[FieldError]:
        wrong_type = version.pipeline.type_errors(new)
        if wrong_type:
            return wrong_type
        found = self.metadata_update_errors(new, old, version, subresource)
        if subresource == "status":
            return found + self.check_status_change(new, old, version)
        judged, changed = self.check(new, version), self.check_change(new, old, version)
        found += [*changed, *judged] if self.judges_change_first else [*judged, *changed]
        self._warn(found, new, old, version, warn)
        return found

    def check_new(self, obj: Object, version: VersionServing) -> list[FieldError]:
        """Return the errors of an object that is created, where they are not those of an update."""
        return self.check(obj, version)

    def _warn(
        self,
        found: list[FieldError],
        new: Object,
        old: Object | None,
        version: VersionServing,
        warn: Warn,
    ) -> None:
        """Warn about what was accepted; a refusal has no warnings."""
        if not found:
            for text in self.advise(new, old, version):
                warn(text)


def keep_user_metadata(new: Object, old: Object) -> None:
    """Restore what users write into metadata, for a write to a part of the object."""
    for name in ("labels", "annotations", "finalizers", "ownerReferences"):
        keep_member(new["metadata"], old["metadata"], name)
