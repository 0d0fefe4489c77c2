"""Field ownership on the write path: computes ``metadata.managedFields`` of a written object.

The write verbs (``write.py``, ``update_attempt.py``, ``apply.py``, ``subresources/scaling.py``) and
the CRD controller call it. The rules are pure functions of ``kube/apply``; this module gives them
the object at the versions that other managers wrote, which needs conversions.

Tracking never fails a write: a version that the CRD no longer has loses its entries, and while a
version cannot be converted its entries stay as they are. An apply compares with the fields that
other managers own, so there a failed conversion fails the request.
"""

from __future__ import annotations

from typing import NamedTuple

from instar.base import offload
from instar.base.errors import ApiError
from instar.base.json_values import Object, same_json
from instar.kube.api.names import parse_group_version
from instar.kube.apply.compare import compare
from instar.kube.apply.managed_fields import Managers, is_reset, only_times_differ
from instar.kube.apply.managers import (
    Writer,
    foreign_versions,
    ownership_before,
    track_create,
    track_update,
)
from instar.kube.apply.ownership_schema import TypedSchema
from instar.kube.schema.json_types import ABSENT
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Target
from instar.server.registry.resources.serving import VersionServing
from instar.server.registry.verbs.conversions import WriteConversions
from instar.wire.conversion.failure import ConversionFailed, FailureType


class PendingOwnership(NamedTuple):
    """An update of an object with managers at other versions, to which it must be converted."""

    before: Managers
    writer: Writer
    live: Object
    new: Object
    versions: set[str]
    """The apiVersions of those managers."""


class Ownership:
    """Field ownership of one write."""

    def __init__(
        self,
        context: Context,
        target: Target,
        options: WriteOptions,
        subresource: str = "",
        conversions: WriteConversions | None = None,
        size: int = 0,
    ) -> None:
        """``size`` is that of the stored object, in bytes."""
        self._context = context
        self._target = target
        self._options = options
        self._subresource = subresource
        self._size = max(size, options.size)
        self._conversions = conversions

    async def on_create(self, obj: Object) -> None:
        """Set ``metadata.managedFields`` of a new object."""
        await offload.run(self._size, self.track_create, obj)

    def track_create(self, obj: Object, decided: list[Object] | None = None) -> None:
        """Set ``metadata.managedFields`` of a new object; an apply has ``decided`` them."""
        _store(obj, self._created(obj) if decided is None else decided)

    def _created(self, obj: Object) -> list[Object] | None:
        sent = obj["metadata"].get("managedFields")
        if is_reset(sent):
            return None
        before = ownership_before(None, obj) if sent else {}
        version = self._target.version
        blank = self._target.serving.strategy.blank(version)
        return track_create(before, self.writer(), blank, obj, version.typed)

    async def on_update(self, new: Object, live: Object) -> None:
        """Set ``metadata.managedFields`` of a changed object."""
        pending = await offload.run(self._size, self.track_update, new, live)
        if pending is not None:
            await self.finish_update(pending)

    def track_update(
        self, new: Object, live: Object, decided: list[Object] | None = None
    ) -> PendingOwnership | None:
        """Set ``metadata.managedFields`` of a changed object, or return what ``finish_update``
        needs to do it. An apply has ``decided`` them."""
        if decided is not None:
            _store(new, decided)
            return None
        before = ownership_before(live, new, self._subresource)
        if not before:
            _store(new, None)
            return None
        own = self._target.version.api_version
        versions, writer = foreign_versions(before, own), self.writer()
        if versions and self._changes(live, new, writer):
            return PendingOwnership(before, writer, live, new, versions)
        schemas = self._schemas(versions)
        _store(new, track_update(before, writer, {own: live}, {own: new}, schemas))
        return None

    async def finish_update(self, pending: PendingOwnership) -> None:
        """Set ``metadata.managedFields`` after converting both objects for the other managers."""
        before, writer, live, new, versions = pending
        old_versions, new_versions = {writer.api_version: live}, {writer.api_version: new}
        for api_version in versions:
            converted = await self._attempted([live, new], api_version)
            if converted is not None:
                old_versions[api_version], new_versions[api_version] = converted
        schemas = self._schemas(versions)
        managed = await offload.run(
            self._size, track_update, before, writer, old_versions, new_versions, schemas
        )
        _store(new, managed)

    def _changes(self, live: Object, new: Object, writer: Writer) -> bool:
        """Return whether any field differs; if none does, no other version is needed."""
        own = self._target.version
        return not compare(own.typed, live, new, writer.skipped(own.api_version)).empty()

    async def _attempted(self, objects: list[Object], api_version: str) -> list[Object] | None:
        try:
            return await self.converted(objects, api_version)
        except ConversionFailed as error:
            if error.failure_type is not FailureType.CALL:
                return None
        except ApiError:
            pass
        # The webhook cannot be reached. Two empty objects show no change, so that the managers of
        # this version keep their fields through the outage.
        return [{} for _ in objects]

    async def converted(
        self, objects: list[Object], api_version: str, source: str = ""
    ) -> list[Object] | None:
        """Return the objects at another version; None if the CRD no longer has that version."""
        wanted = self._version(api_version)
        current = self._version(source) if source else self._target.version
        if wanted is None or current is None:
            return None
        conversions = self._conversions or WriteConversions(self._target.codec)
        return await conversions.as_read(objects, current, wanted)

    def _version(self, api_version: str) -> VersionServing | None:
        group_version = parse_group_version(api_version)
        if group_version.group != self._target.serving.group:
            return None
        return self._target.serving.versions.get(group_version.version)

    def writer(self) -> Writer:
        """Return the manager of this write, as its entry in managedFields will name it."""
        serving, version = self._target.serving, self._target.version
        return Writer(
            self._options.manager,
            version.api_version,
            self._context.timestamp(),
            self._subresource,
            serving.ignored_fields(version, self._subresource),
            serving.strategy.unset(version),
        )

    def _schemas(self, foreign: set[str]) -> dict[str, TypedSchema]:
        own = self._target.version
        schemas = {own.api_version: own.typed}
        if foreign:
            for version in self._target.serving.versions.values():
                if version.api_version in foreign:
                    schemas[version.api_version] = version.typed
        return schemas


def keep_times(new: Object, live: Object) -> None:
    """Restore the times in ``managedFields`` where a write changed nothing but these times."""
    owners, before = new["metadata"].get("managedFields"), live["metadata"].get("managedFields")
    if owners is before or not owners or not before or _changes_content(new, live):
        return
    if only_times_differ(before, owners):
        new["metadata"]["managedFields"] = before


def _changes_content(new: Object, live: Object) -> bool:
    return _differ(new["metadata"], live["metadata"], _BESIDES) or _differ(new, live, _METADATA)


def _differ(one: Object, other: Object, but_for: frozenset[str]) -> bool:
    for name, value in one.items():
        was = other.get(name, ABSENT)
        if value is not was and name not in but_for and not same_json(value, was):
            return True
    return bool(other.keys() - one.keys() - but_for)


_BESIDES = frozenset(("managedFields", "resourceVersion"))
_METADATA = frozenset(("metadata",))


def _store(obj: Object, managed: list[Object] | None) -> None:
    if managed:
        obj["metadata"]["managedFields"] = managed
    else:
        obj["metadata"].pop("managedFields", None)
