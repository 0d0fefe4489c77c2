"""What a resource does to its objects on the way in and out. This is the custom resources' way;
built-ins and CRDs override what differs.

Every method works on plain dicts, in place where it says so, and knows neither storage nor HTTP.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from instar.api.patch_types import OF_CUSTOM, PatchType
from instar.errors import Undecodable
from instar.fields import NO_FIELD, FieldError, Kind, invalid
from instar.plain import Object
from instar.registry.verbs.scale import scale_errors
from instar.schema.objectmeta import (
    MetaError,
    NameRule,
    coerce_metadata,
    coerce_metadata_lenient,
    name_is_subdomain,
    validate_metadata,
    validate_metadata_update,
)

if TYPE_CHECKING:
    from instar.registry.resources.serving import VersionServing

Warn = Callable[[str], None]

_STOPS_RULES = {
    Kind.NOT_SUPPORTED,
    Kind.REQUIRED,
    Kind.TOO_LONG,
    Kind.TOO_MANY,
    Kind.TYPE_INVALID,
}
_RULES_SKIPPED = invalid(
    NO_FIELD,
    None,
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)
_WELL_KNOWN_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")


class Strategy:
    reshapes = False
    """Whether versions differ in more than ``apiVersion`` and schema."""
    unconditional_update = False
    storage_preconditions = False
    """Whether a delete tells a failed precondition in the storage's words."""
    scheme = ""
    """Where upstream registers a built-in kind, as its refusals say it."""
    piecewise = True
    """Whether each member of an object can be decoded without looking at the others."""
    patch_types: tuple[PatchType, ...] = OF_CUSTOM
    name_rule: NameRule = staticmethod(name_is_subdomain)
    after_write: Callable[[str], Awaitable[None]] | None = None
    """Awaited with the object's name after a write, before it is answered."""

    def decode(self, obj: Object, version: VersionServing) -> list[str]:
        """Make a request's body an object of ``version``, in place; unknown fields' paths."""
        try:
            unknown = self.clean_metadata(obj)
            if obj.get("kind") != version.kind or obj.get("apiVersion") != version.api_version:
                return unknown
            compiled = version.compiled
            unknown += compiled.prune_reporting(obj)
            compiled.drop_nulls(obj)
            unknown += compiled.coerce_embedded(obj, lenient=False)
            compiled.default(obj)
        except MetaError as error:
            raise self.undecodable(obj, version, str(error)) from error
        return unknown

    def clean_metadata(self, obj: Object) -> list[str]:
        metadata = obj.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") == []:
            metadata["managedFields"] = [{}]
        obj["metadata"], unknown = coerce_metadata(metadata)
        return unknown

    def refuse_other_kinds(self, obj: Object, version: VersionServing) -> None:
        """Built-in endpoints cannot even decode another kind; custom ones find it invalid."""
        kind = obj.get("kind", "")
        if obj.get("apiVersion") == version.api_version and kind != version.kind:
            text = (
                f'no kind "{kind}" is registered for version "{version.api_version}" in scheme '
                f'"{self.scheme}"'
            )
            raise self.undecodable(obj, version, text)

    def undecodable(self, obj: Object, version: VersionServing, text: str) -> Undecodable:
        kind = obj.get("kind", "")
        named = obj.get("apiVersion", "").rpartition("/")[2] or version.name
        return Undecodable(
            f'{kind} in version "{named}" cannot be handled as a {version.kind}: {text}', text
        )

    def from_storage(self, obj: Object, version: VersionServing) -> None:
        """Bring stored bytes to today's schema of the version they are stored in, in place."""
        obj["metadata"] = coerce_metadata_lenient(obj.get("metadata"))
        compiled = version.compiled
        compiled.prune(obj)
        compiled.drop_nulls(obj)
        compiled.coerce_embedded(obj, lenient=True)
        compiled.default(obj)

    def after_conversion(self, obj: Object, version: VersionServing) -> None:
        """Prune what a converter left that ``version`` does not know, in place."""
        compiled = version.compiled
        compiled.prune(obj)
        compiled.drop_nulls(obj)
        compiled.coerce_embedded(obj, lenient=True)

    def default(self, obj: Object, version: VersionServing) -> None:
        version.compiled.default(obj)

    def prepare_create(self, obj: Object, version: VersionServing) -> None:
        obj["metadata"]["generation"] = 1
        if version.has_status:
            obj.pop("status", None)

    def prepare_update(self, new: Object, old: Object, version: VersionServing) -> None:
        if version.has_status:
            _keep(new, old, "status")
        if _differs(new, old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def prepare_status(self, new: Object, old: Object, version: VersionServing) -> None:
        """Only ``status`` and field ownership may change."""
        status, managed = new.get("status"), new["metadata"].get("managedFields")
        kind, api_version = new.get("kind"), new.get("apiVersion")
        has_status = "status" in new
        new.clear()
        new.update(old)
        new["metadata"] = dict(old["metadata"])
        new |= {"kind": kind, "apiVersion": api_version}
        new.pop("status", None)
        if has_status:
            new["status"] = status
        if managed is not None:
            new["metadata"]["managedFields"] = managed

    def prepare_subresource(
        self, subresource: str, new: Object, old: Object, version: VersionServing
    ) -> None:
        if subresource == "status":
            self.prepare_status(new, old, version)
        else:
            self.prepare_update(new, old, version)

    def check_create(self, obj: Object, version: VersionServing, warn: Warn) -> list[FieldError]:
        wrong_type = type_errors(obj, version)
        if wrong_type:
            return wrong_type
        found = self.metadata_errors(obj, version)
        warn_finalizers(obj, None, warn)
        compiled = version.compiled
        found += compiled.validate(obj)
        found += scale_errors(obj, version.definition.scale, status_only=False)
        found += compiled.embedded_errors(obj)
        found += compiled.list_type_errors(obj)
        return found + self.rule_errors(found, obj, None, version, warn)

    def check_update(
        self, new: Object, old: Object, version: VersionServing, subresource: str, warn: Warn
    ) -> list[FieldError]:
        wrong_type = type_errors(new, version)
        if wrong_type:
            return wrong_type
        found = self.metadata_update_errors(new, old, version)
        compiled = version.compiled
        status_only = subresource == "status"
        if status_only:
            found += _status_errors(compiled, new, old)
        else:
            warn_finalizers(new, old, warn)
            found += compiled.validate(new, old)
        found += scale_errors(new, version.definition.scale, status_only=status_only)
        if not status_only:
            found += compiled.embedded_errors(new)
        found += compiled.list_type_errors(new, old)
        return found + self.rule_errors(found, new, old, version, warn)

    def metadata_errors(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return validate_metadata(
            obj["metadata"], name_rule=self.name_rule, namespaced="namespace" in obj["metadata"]
        )

    def metadata_update_errors(
        self, new: Object, old: Object, version: VersionServing
    ) -> list[FieldError]:
        """Twice, because upstream's generic layer and its strategy both report."""
        if new["metadata"] == old["metadata"]:
            return []
        found = self.metadata_errors(new, version)
        changed = validate_metadata_update(new["metadata"], old["metadata"])
        told = set(map(str, found))
        found += [error for error in changed if str(error) not in told]
        return found + found

    def rule_errors(
        self,
        found: list[FieldError],
        new: Object,
        old: Object | None,
        version: VersionServing,
        warn: Warn,
    ) -> list[FieldError]:
        program = version.rules
        if program is None:
            return []
        if any(error.kind in _STOPS_RULES for error in found):
            return [_RULES_SKIPPED]
        outcome = program.evaluate(new, old)
        for text in outcome.warnings:
            warn(text)
        return outcome.errors

    def mark_deleting(self, stored: Object, now: str) -> bool:
        """Change a stored object (in place) that may not go at once; True when it must linger."""
        return False

    def gone_when_released(self, obj: Object) -> bool:
        """Whether losing the last finalizer lets a terminating object go."""
        return True


def type_errors(obj: Object, version: VersionServing) -> list[FieldError]:
    found: list[FieldError] = []
    if obj.get("kind") != version.kind:
        found.append(invalid("kind", obj.get("kind", ""), f"must be {version.kind}"))
    if obj.get("apiVersion") != version.api_version:
        text = f"must be {version.api_version}"
        found.append(invalid("apiVersion", obj.get("apiVersion", ""), text))
    return found


def warn_finalizers(new: Object, old: Object | None, warn: Warn) -> None:
    """New finalizers should carry a domain; upstream only advises."""
    added = set(new["metadata"].get("finalizers") or ())
    if not added:
        return
    if old is not None:
        added -= set(old["metadata"].get("finalizers") or ())
    for name in sorted(added):
        if "/" in name or name in _WELL_KNOWN_FINALIZERS:
            continue
        how = "including a path (/) " if "." in name else ""
        warn(
            f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name {how}'
            "to avoid accidental conflicts with other finalizer writers"
        )


def _status_errors(compiled: Any, new: Object, old: Object) -> list[FieldError]:
    if "status" not in new:
        return []
    found: list[FieldError] = (
        compiled.validate_status(new["status"], old["status"])
        if "status" in old
        else compiled.validate_status(new["status"])
    )
    return found


def _keep(new: Object, old: Object, name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def _differs(new: Object, old: Object) -> bool:
    if new.keys() != old.keys():
        return True
    return any(new[name] != old[name] for name in new if name != "metadata")
