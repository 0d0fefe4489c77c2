"""Writes to the scale subresource: update, patch and apply of a Scale.

``server/rest/scaling.py`` calls it. The Scale is changed, then its replicas are written to the
object by ``write.update``; ``scale.py`` maps between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from instar.base import errors, offload
from instar.base.field_errors import invalid
from instar.base.json_values import Object, copy_json
from instar.kube.api.crd import ScalePaths
from instar.kube.api.names import GroupVersionKind
from instar.kube.apply.applying import Application, apply_patch
from instar.kube.apply.managed_fields import decode
from instar.kube.apply.managers import Writer, track_update
from instar.kube.apply.ownership_schema import SCALE as SCALE_SCHEMA
from instar.kube.apply.scale import entries_after_scale as entries_of_parent
from instar.kube.apply.scale import replicas_path
from instar.kube.apply.scale import to_scale as entries_of_scale
from instar.kube.patches.documents import Patch
from instar.kube.schema.metadata.object_meta import MetaError
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.apply import drive
from instar.server.registry.verbs.metadata import check_names
from instar.server.registry.verbs.ownership import Ownership
from instar.server.registry.verbs.patch import read_patched, report_strictly, undecodable
from instar.server.registry.verbs.subresources.scale import (
    API_VERSION,
    KIND,
    as_scale,
    set_replicas,
)
from instar.server.registry.verbs.subresources.scale_decode import decode_scale
from instar.server.registry.verbs.write import update
from instar.server.registry.verbs.write_request import Proposal, UpdateRules, WritePart, WriteResult

_SCHEMAS = {API_VERSION: SCALE_SCHEMA}


async def update_scale(
    context: Context, target: Target, scale: Object, paths: ScalePaths, options: WriteOptions
) -> WriteResult:
    """Handle a PUT; ``scale`` is decoded already."""
    return await _write(context, target, paths, lambda _: scale, options, is_patch=False)


async def patch_scale(
    context: Context, target: Target, change: Patch, paths: ScalePaths, options: WriteOptions
) -> WriteResult:
    """Handle a JSON or merge patch."""

    def patched(current: Object) -> Object:
        document = change.apply(current)
        quote = partial(change.quote, document, current)
        try:
            scale, unknown = decode_scale(read_patched(document, quote))
        except MetaError as error:
            raise undecodable(quote, str(error)) from error
        listed = [*change.problems, *(f'unknown field "{path}"' for path in unknown)]
        report_strictly(quote, listed, options)
        return scale

    return await _write(context, target, paths, patched, options, is_patch=True)


async def _write(
    context: Context,
    target: Target,
    paths: ScalePaths,
    change: Callable[[Object], Object],
    options: WriteOptions,
    *,
    is_patch: bool,
) -> WriteResult:
    owners = _Owners(context, target, options)

    async def propose(old: Object, entry: CacheEntry) -> Proposal:
        current = as_scale(old, paths)
        wanted = await offload.run(options.size, change, current)
        check_names(wanted, target)
        if target.serving.builtin:
            _check_count(wanted)
        new = copy_json(old)
        set_replicas(new, wanted, paths)
        given = wanted["metadata"]
        new["metadata"]["resourceVersion"] = given.get("resourceVersion") or str(entry.revision)
        if given.get("uid"):
            new["metadata"]["uid"] = given["uid"]
        return Proposal(new, owners.after_update(old, current, wanted))

    rules = UpdateRules(
        "scale", unconditional=True, uid_is_precondition=not is_patch, part=_scale_of(paths)
    )
    return await update(context, target, propose, options, rules)


def _check_count(scale: Object) -> None:
    """Refuse negative replicas: for a built-in kind the Scale itself is validated before the
    object."""
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        wrong = [invalid("spec.replicas", replicas, "must be greater than or equal to 0")]
        raise errors.invalid("autoscaling", KIND, scale["metadata"].get("name", ""), wrong)


async def apply_scale(
    context: Context, target: Target, config: Object, paths: ScalePaths, options: WriteOptions
) -> WriteResult:
    """Handle a server-side apply."""
    owners = _Owners(context, target, options)

    async def propose(old: Object, entry: CacheEntry) -> Proposal:
        live = as_scale(old, paths)
        live["metadata"]["managedFields"] = owners.seen(old)
        request = Application(
            writer=owners.writer(),
            config=copy_json(config),
            live=live,
            schemas=_SCHEMAS,
            force=options.force,
        )
        applied = await drive(owners.ownership, target, apply_patch(request), entry.size)
        new = copy_json(old)
        set_replicas(new, applied.obj, paths)
        return Proposal(new, owners.kept(old, applied.managed_fields))

    rules = UpdateRules(
        "scale", unconditional=True, uid_is_precondition=False, part=_scale_of(paths)
    )
    return await update(context, target, propose, options, rules)


class _Owners:
    """Field ownership of a Scale: computed on the Scale, stored in the object's managedFields."""

    def __init__(self, context: Context, target: Target, options: WriteOptions) -> None:
        self.ownership = Ownership(context, target, options, "scale")
        self._version = target.version.api_version
        self._replicas = {
            version.api_version: replicas_path(version.definition.scale.spec_replicas)
            for version in target.serving.versions.values()
            if version.definition.scale is not None
        }

    def writer(self) -> Writer:
        return self.ownership.writer()._replace(api_version=API_VERSION, ignored={})

    def seen(self, obj: Object) -> list[Object]:
        return entries_of_scale(obj["metadata"].get("managedFields"), self._replicas)

    def kept(self, obj: Object, seen: list[Object] | None) -> list[Object]:
        managed = obj["metadata"].get("managedFields")
        return entries_of_parent(managed, seen, self._replicas, self._version)

    def after_update(self, obj: Object, live: Object, new: Object) -> list[Object] | None:
        """Return the object's managedFields after the update; None if it has none."""
        if not obj["metadata"].get("managedFields"):
            return None
        before = decode(self.seen(obj))
        now = track_update(before, self.writer(), {API_VERSION: live}, {API_VERSION: new}, _SCHEMAS)
        return self.kept(obj, now)


def _scale_of(paths: ScalePaths) -> WritePart:
    """Return the part that admission sees and may change: the Scale."""

    def take(obj: Object, shown: Object) -> None:
        try:
            wanted, _ = decode_scale(shown)
        except MetaError as error:
            raise errors.Internal(str(error)) from error
        set_replicas(obj, wanted, paths)

    return WritePart(
        GroupVersionKind("autoscaling", "v1", KIND), lambda obj: as_scale(obj, paths), take
    )
