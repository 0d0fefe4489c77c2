"""managedFields on the write path: asks ``apply/`` who owns what, fetches versions it needs.

Tracking never fails a write: a version that is gone costs its own entries, and while a version
cannot be converted its entries stay as they are. An apply is judged by what others own, so
there a failed conversion is a failure.
"""

from __future__ import annotations

from functools import partial

from instar.base import offload
from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.kube.api.names import parse_group_version
from instar.kube.apply.compare import compare
from instar.kube.apply.managed_fields import is_reset, only_times_differ
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
from instar.server.registry.verbs.conversions import Conversions
from instar.wire.conversion.failure import ConversionFailed, FailureType


class Ownership:
    """Field ownership for one write."""

    def __init__(
        self,
        context: Context,
        target: Target,
        options: WriteOptions,
        subresource: str = "",
        conversions: Conversions | None = None,
        size: int = 0,
    ) -> None:
        """``size`` is what is there already, in bytes."""
        self._context = context
        self._target = target
        self._options = options
        self._subresource = subresource
        self._size = max(size, options.size)
        self._conversions = conversions

    async def on_create(self, obj: Object, decided: list[Object] | None) -> None:
        """Set ``metadata.managedFields`` of a new object."""
        if decided is None and offload.is_small(self._size):
            decided = self._created(obj)
        elif decided is None:
            decided = await offload.apart(partial(self._created, obj))
        _store(obj, decided)

    def _created(self, obj: Object) -> list[Object] | None:
        sent = obj["metadata"].get("managedFields")
        if is_reset(sent):
            return None
        before = ownership_before(None, obj) if sent else {}
        version = self._target.version
        blank = self._target.serving.strategy.blank(version)
        return track_create(before, self.writer(), blank, obj, version.typed)

    async def on_update(self, new: Object, live: Object, decided: list[Object] | None) -> None:
        """Set ``metadata.managedFields`` of a changed object."""
        _store(new, await self._tracked(new, live) if decided is None else decided)

    async def _tracked(self, new: Object, live: Object) -> list[Object] | None:
        small = offload.is_small(self._size)
        if small:
            before = ownership_before(live, new, self._subresource)
        else:
            before = await offload.apart(partial(ownership_before, live, new, self._subresource))
        if not before:
            return None
        own = self._target.version.api_version
        wanted = foreign_versions(before, own)
        writer = self.writer()
        if small and not wanted:
            schemas = {own: self._target.version.typed}
            return track_update(before, writer, {own: live}, {own: new}, schemas)
        old_versions, new_versions = {own: live}, {own: new}
        changed = False
        if wanted:
            changed = await offload.run(self._size, lambda: self._changes(live, new, writer))
        if changed:
            for api_version in wanted:
                converted = await self._attempted([live, new], api_version)
                if converted is not None:
                    old_versions[api_version], new_versions[api_version] = converted
        schemas = self._schemas(wanted)
        track = partial(track_update, before, writer, old_versions, new_versions, schemas)
        return track() if offload.is_small(self._size) else await offload.apart(track)

    def _changes(self, live: Object, new: Object, writer: Writer) -> bool:
        """Whether anything is different; when nothing is, nobody's version is needed."""
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
        # Out of reach for now: two empty objects, so nothing changed as far as anybody can tell
        # and an outage costs nobody what is theirs.
        return [{} for _ in objects]

    async def converted(
        self, objects: list[Object], api_version: str, source: str = ""
    ) -> list[Object] | None:
        """The objects at another version; None when that version is gone."""
        wanted = self._version(api_version)
        current = self._version(source) if source else self._target.version
        if wanted is None or current is None:
            return None
        conversions = self._conversions or Conversions(self._target.codec)
        return await conversions.as_read(objects, current, wanted)

    def _version(self, api_version: str) -> VersionServing | None:
        group_version = parse_group_version(api_version)
        if group_version.group != self._target.serving.group:
            return None
        return self._target.serving.versions.get(group_version.version)

    def writer(self) -> Writer:
        serving, version = self._target.serving, self._target.version
        return Writer(
            self._options.manager,
            version.api_version,
            self._context.timestamp(),
            self._subresource,
            serving.ignored_fields(version, self._subresource),
            serving.strategy.unset(version),
        )

    def _schemas(self, wanted: set[str] | None = None) -> dict[str, TypedSchema]:
        own = self._target.version.api_version
        return {
            version.api_version: version.typed
            for version in self._target.serving.versions.values()
            if version.api_version == own or (wanted and version.api_version in wanted)
        }


def keep_times(new: Object, live: Object) -> None:
    """Put back when its owners wrote, in an object of which a write changed nothing besides."""
    owners, before = new["metadata"].get("managedFields"), live["metadata"].get("managedFields")
    if owners is before or not owners or not before or _changes_content(new, live):
        return
    if only_times_differ(before, owners):
        new["metadata"]["managedFields"] = before


def _changes_content(new: Object, live: Object) -> bool:
    return _differ(new["metadata"], live["metadata"], _BESIDES) or _differ(new, live, _METADATA)


def _differ(one: Object, other: Object, but_for: frozenset[str]) -> bool:
    for name, value in one.items():
        if name not in but_for and value != other.get(name, ABSENT):
            return True
    return bool(other.keys() - one.keys() - but_for)


_BESIDES = frozenset(("managedFields", "resourceVersion"))
_METADATA = frozenset(("metadata",))


def _store(obj: Object, managed: list[Object] | None) -> None:
    if managed:
        obj["metadata"]["managedFields"] = managed
    else:
        obj["metadata"].pop("managedFields", None)
