"""Strategy of a kind: decodes, defaults, prepares and validates its objects.

The verbs and ``stored/codec.py`` call it. ``Strategy`` is that of custom resources;
``registry/kinds`` overrides it for built-in kinds and CRDs. Methods work on plain dicts, in place
where they say so; ``kube/schema/pipeline.py`` has the order of the schema steps.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from instar.base.errors import Undecodable
from instar.base.field_errors import FieldError
from instar.base.json_values import Object, same_json
from instar.kube.api.patch_types import OF_CUSTOM, PatchType
from instar.kube.schema.metadata.object_meta import MetaError, NameRule, name_is_subdomain
from instar.kube.schema.pipeline import (
    Warn,
    decode_metadata,
    metadata_errors,
    metadata_update_errors,
    take_in_applied,
)
from instar.kube.typed.reading import zero_object

if TYPE_CHECKING:
    from instar.server.registry.resources.serving import VersionServing
    from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry


class Strategy:
    """The strategy of custom resources, and the base of the others."""

    reshapes = False
    """Whether versions differ in more than ``apiVersion`` and schema."""
    unconditional_update = False
    """Whether an update without resourceVersion is allowed."""
    told_group: str | None = None
    """The group in error messages, where it is not the resource's own."""
    storage_preconditions = False
    """Whether a delete reports a failed precondition in the words of upstream's storage layer."""
    scheme = ""
    """The scheme in upstream's error texts where it registers a built-in kind."""
    keeps_nulls = True
    """Whether a null that the schema forbids survives an apply, for validation to refuse it.
    Built-in kinds have typed fields, which read null as absent."""
    piecewise = True
    """Whether each member of an object can be decoded independently of the others."""
    patch_types: tuple[PatchType, ...] = OF_CUSTOM
    name_rule: NameRule = staticmethod(name_is_subdomain)
    answers_deleted = False
    """Whether the response to a delete is the deleted object."""
    creates_on_update = False
    """Whether a PUT of a missing object creates it."""
    orphans_by_default = False
    """Whether a delete without a propagation policy orphans the dependents."""
    orphan_advice = ""
    """The warning sent in that case."""
    after_write: Callable[[str], Awaitable[None]] | None = None
    """Awaited with the object's name after a write, before the response."""
    store_new: Callable[[InMemoryEntry, Object], Awaitable[CacheEntry]] | None = None
    """Stores a new object instead of ``Backend.put``, if set."""

    def decode(self, obj: Object, version: VersionServing) -> list[str]:
        """Make a request's body an object of ``version``, in place. Return the paths of unknown
        fields."""
        try:
            return version.pipeline.decode(obj)
        except MetaError as error:
            raise self.undecodable(obj, version, str(error)) from error

    def adopt(self, obj: Object, version: VersionServing) -> None:
        """Make the result of an apply an object of ``version``, in place."""
        if not self.keeps_nulls:
            self.decode(obj, version)
            return
        try:
            self.clean_metadata(obj)
            take_in_applied(version.compiled, obj)
        except MetaError as error:
            raise self.undecodable(obj, version, str(error)) from error

    def readmit(self, obj: Object, version: VersionServing) -> None:
        """Make what admission changed an object of ``version``, in place. Unknown fields stay until
        the object is stored, for other plugins to see."""
        version.pipeline.default(obj)

    def blank(self, version: VersionServing) -> Object | None:
        """Return what a new object is compared with to find the fields that its creator set. A
        built-in kind has fields before any is set; for a custom resource it is None."""
        return None if self.keeps_nulls else zero_object(version.api_version, version.kind)

    def clean_metadata(self, obj: Object) -> list[str]:
        return decode_metadata(obj)

    def refuse_other_kinds(self, obj: Object, version: VersionServing) -> None:
        """Refuse another kind while decoding, as built-in endpoints do; custom ones find it invalid
        later."""
        kind = obj.get("kind", "")
        if obj.get("apiVersion") == version.api_version and kind != version.kind:
            text = (
                f'no kind "{kind}" is registered for version "{version.api_version}" in scheme '
                f'"{self.scheme}"'
            )
            raise self.undecodable(obj, version, text)

    def undecodable(
        self, obj: Object, version: VersionServing, text: str, restored: str = ""
    ) -> Undecodable:
        kind = obj.get("kind") or ""
        named = (obj.get("apiVersion") or "").rpartition("/")[2] or version.name
        told = f'{kind} in version "{named}" cannot be handled as a {version.kind}: {text}'
        return Undecodable(told, text, restored)

    def from_storage(self, obj: Object, version: VersionServing) -> None:
        """Bring a stored object to today's schema of its stored version, in place."""
        version.pipeline.from_storage(obj)

    def after_conversion(self, obj: Object, version: VersionServing) -> None:
        """Prune fields that ``version`` does not have, in place."""
        version.pipeline.after_conversion(obj)

    def default(self, obj: Object, version: VersionServing) -> None:
        version.pipeline.default(obj)

    def prepare_create(self, obj: Object, version: VersionServing) -> None:
        obj["metadata"]["generation"] = 1
        version.pipeline.leave_status(obj)

    def prepare_update(self, new: Object, old: Object, version: VersionServing) -> None:
        version.pipeline.keep_status(new, old)
        if _differs(new, old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def prepare_status(self, new: Object, old: Object, version: VersionServing) -> None:
        """Restore everything but ``status`` and managedFields."""
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
        return version.pipeline.check_create(obj, warn, self.name_rule)

    def check_update(
        self, new: Object, old: Object, version: VersionServing, subresource: str, warn: Warn
    ) -> list[FieldError]:
        return version.pipeline.check_update(
            new, old, status_only=subresource == "status", warn=warn, name_rule=self.name_rule
        )

    def metadata_errors(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return metadata_errors(obj["metadata"], self.name_rule)

    def metadata_update_errors(
        self, new: Object, old: Object, version: VersionServing, subresource: str = ""
    ) -> list[FieldError]:
        return metadata_update_errors(new["metadata"], old["metadata"], self.name_rule)

    def unset(self, version: VersionServing) -> Object:
        """Return what an object shows before any field is set: these fields get no manager."""
        return {}

    def grace_period(self, stored: Object, wanted: int | None) -> int | None:
        """Return the grace period of a deletion in seconds; None if the kind has none."""
        return None

    def mark_deleting(self, stored: Object, now: str) -> bool:
        """Change a stored object, in place, that cannot be removed at once. Return whether it must
        stay."""
        return False

    def gone_when_released(self, obj: Object) -> bool:
        """Return whether a terminating object goes with its last finalizer."""
        return True


def _differs(new: Object, old: Object) -> bool:
    if new.keys() != old.keys():
        return True
    for name, value in new.items():
        was = old[name]
        if value is not was and name != "metadata" and not same_json(value, was):
            return True
    return False
