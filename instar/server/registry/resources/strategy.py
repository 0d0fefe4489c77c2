"""What a resource does to its objects on the way in and out. This is the custom resources' way;
built-ins and CRDs override what differs. The order of steps is not its own: that is
``kube/schema/pipeline.py``.

Every method works on plain dicts, in place where it says so, and knows neither storage nor HTTP.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from instar.base.errors import Undecodable
from instar.base.field_errors import FieldError
from instar.base.json_values import Object
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
    reshapes = False
    """Whether versions differ in more than ``apiVersion`` and schema."""
    unconditional_update = False
    told_group: str | None = None
    """The group that refusals name, where it is not the resource's own."""
    storage_preconditions = False
    """Whether a delete tells a failed precondition in the storage's words."""
    scheme = ""
    """Where upstream registers a built-in kind, as its refusals say it."""
    keeps_nulls = True
    """Whether a null that may not be null survives an apply, for validation to refuse. Built-in
    kinds have typed fields, where it is the same as nothing."""
    piecewise = True
    """Whether each member of an object can be decoded without looking at the others."""
    patch_types: tuple[PatchType, ...] = OF_CUSTOM
    name_rule: NameRule = staticmethod(name_is_subdomain)
    answers_deleted = False
    """Whether a deletion is answered with the object that is gone."""
    creates_on_update = False
    """Whether a PUT of what is not there makes it."""
    orphans_by_default = False
    """Whether a deletion that does not say leaves dependents behind."""
    orphan_advice = ""
    """What is told then."""
    after_write: Callable[[str], Awaitable[None]] | None = None
    """Awaited with the object's name after a write, before it is answered."""
    store_new: Callable[[InMemoryEntry, Object], Awaitable[CacheEntry]] | None = None
    """Stores a new object; None: as it is."""

    def decode(self, obj: Object, version: VersionServing) -> list[str]:
        """Make a request's body an object of ``version``, in place; unknown fields' paths."""
        try:
            return version.pipeline.decode(obj)
        except MetaError as error:
            raise self.undecodable(obj, version, str(error)) from error

    def adopt(self, obj: Object, version: VersionServing) -> None:
        """Make what an apply merged an object of ``version``, in place."""
        if not self.keeps_nulls:
            self.decode(obj, version)
            return
        try:
            self.clean_metadata(obj)
            take_in_applied(version.compiled, obj)
        except MetaError as error:
            raise self.undecodable(obj, version, str(error)) from error

    def readmit(self, obj: Object, version: VersionServing) -> None:
        """Make what admission changed an object of ``version``, in place; what the version does
        not know stays until the object is stored, for others in admission to see."""
        version.pipeline.default(obj)

    def blank(self, version: VersionServing) -> Object | None:
        """What a new object's fields are compared with to know who set them. A built-in kind has
        some before anybody sets anything; a custom one has none (None)."""
        return None if self.keeps_nulls else zero_object(version.api_version, version.kind)

    def clean_metadata(self, obj: Object) -> list[str]:
        return decode_metadata(obj)

    def refuse_other_kinds(self, obj: Object, version: VersionServing) -> None:
        """Built-in endpoints cannot even decode another kind; custom ones find it invalid."""
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
        """Bring stored bytes to today's schema of the version they are stored in, in place."""
        version.pipeline.from_storage(obj)

    def after_conversion(self, obj: Object, version: VersionServing) -> None:
        """Prune what a converter left that ``version`` does not know, in place."""
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
        self, new: Object, old: Object, version: VersionServing
    ) -> list[FieldError]:
        return metadata_update_errors(new["metadata"], old["metadata"], self.name_rule)

    def unset(self, version: VersionServing) -> Object:
        """What an object shows before anything is set: nobody becomes the owner of that."""
        return {}

    def grace_period(self, stored: Object, wanted: int | None) -> int | None:
        """Seconds a deletion leaves the object; None where the kind knows of no grace."""
        return None

    def mark_deleting(self, stored: Object, now: str) -> bool:
        """Change a stored object (in place) that may not go at once; True when it must linger."""
        return False

    def gone_when_released(self, obj: Object) -> bool:
        """Whether losing the last finalizer lets a terminating object go."""
        return True


def _differs(new: Object, old: Object) -> bool:
    if new.keys() != old.keys():
        return True
    for name, value in new.items():
        was = old[name]
        if value is not was and name != "metadata" and value != was:
            return True
    return False
