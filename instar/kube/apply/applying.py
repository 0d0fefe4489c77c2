"""Server-side apply: merges a configuration, removes fields no longer applied, detects conflicts.

Called by ``server/registry/verbs/apply.py`` and ``server/registry/verbs/subresources/scaling.py``.
``apply_patch`` is a generator (see ``conversion_requests.py``) that yields the conversions it
needs, because managers own fields in the versions they wrote. If a version cannot be converted,
only that version's entries are lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

from instar.base import errors
from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, copy_json, same_json_numbers
from instar.kube.api.names import GroupVersionKind, parse_group_version
from instar.kube.apply import last_applied
from instar.kube.apply.compare import Comparison, compare
from instar.kube.apply.conflicts import ApplyConflict
from instar.kube.apply.conversion_requests import Step, convert_all
from instar.kube.apply.field_set import (
    LEAF,
    FieldSet,
    difference,
    intersection,
    union,
    without_subtrees,
)
from instar.kube.apply.managed_fields import (
    APPLY,
    BadManagedFields,
    ManagedFieldsEntry,
    ManagerKey,
    Managers,
    decode,
    encode,
    identify,
)
from instar.kube.apply.managers import Schemas, Writer, foreign_versions, reconcile, update_managers
from instar.kube.apply.merge import merge
from instar.kube.apply.owned_paths import NEVER_OWNED, owned_in_object
from instar.kube.apply.pruning import Pruned, must_prune, prune
from instar.kube.apply.validate import problems_text, type_problems

BEFORE_FIRST_APPLY = "before-first-apply"


class Applied(NamedTuple):
    """The object to write (without managedFields, not yet defaulted) and its managedFields.

    ``changed`` is False when ``obj`` equals the live object; the entries may differ even then.
    """

    obj: Object
    managed_fields: list[dict[str, Any]] | None
    changed: bool


@dataclass(frozen=True)
class Application:
    """One apply request. ``live`` is None when the object is about to be created."""

    writer: Writer
    config: Object
    live: Object | None
    schemas: Schemas
    force: bool = False

    @property
    def version(self) -> str:
        return self.writer.api_version

    @cached_property
    def identity(self) -> ManagerKey:
        writer = self.writer
        return identify(writer.manager, APPLY, writer.api_version, writer.subresource)


def apply_patch(request: Application) -> Step[Applied]:
    """Run an apply. Raises ``ApplyConflict`` or the error that upstream would answer with."""
    version, schema = request.version, request.schemas[request.version]
    _check_config(request)
    live = _without_managed_fields(
        request.live if request.live is not None else _empty_object(request.config)
    )
    managers = _managers_before(request, live)
    claimed = _claimed_fields(request)
    last = managers.get(request.identity)
    merged = merge(schema, live, request.config)
    if same_json_numbers(merged, live) and not must_prune(schema, version, last, claimed):
        managers = {owner: reconcile(entry, request.schemas) for owner, entry in managers.items()}
        managers[request.identity] = _own_entry(request, claimed, last)
        return _with_applier_entry(request, live, live, managers)

    foreign = foreign_versions(managers, version) & request.schemas.keys()
    lives, mergeds = yield from convert_all([live, merged], foreign)
    lives[version], mergeds[version] = live, merged
    managers = _reconciled_managers(managers, request.schemas, lives.keys() & mergeds.keys())
    last = managers.get(request.identity)
    managers[request.identity] = _own_entry(request, claimed, last)
    pruned = Pruned(merged, mergeds)
    if last is not None and must_prune(schema, version, last, claimed):
        pruned = yield from prune(mergeds, version, last, managers, request.schemas)
    if not same_json_numbers(pruned.obj, live):
        news = yield from _at_manager_versions(pruned, foreign_versions(managers, version))
        managers = _managers_after_change(request, managers, lives, {**news, version: pruned.obj})
    return _with_applier_entry(request, live, pruned.obj, managers)


def _check_config(request: Application) -> None:
    config = request.config
    if config.get("apiVersion") != request.version:
        raise errors.BadRequest(
            "Incorrect version specified in apply patch. Specified patch version: "
            f"{config.get('apiVersion') or ''}, expected: {request.version}"
        )
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise errors.BadRequest("metadata.managedFields must be nil")
    problems = type_problems(request.schemas[request.version], config)
    if problems:
        raise errors.Unclassified(
            f"failed to create typed patch object ({_name_text(config)}): {problems_text(problems)}"
        )


def _name_text(obj: Object) -> str:
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    group, version = parse_group_version(obj.get("apiVersion") or "")
    kind = GroupVersionKind(group, version, obj.get("kind") or "")
    names = (metadata.get(name) for name in ("namespace", "name"))
    return f"{'/'.join(name if isinstance(name, str) else '' for name in names)}; {kind}"


def _empty_object(config: Object) -> Object:
    return {"apiVersion": config.get("apiVersion"), "kind": config.get("kind")}


def _without_managed_fields(obj: Object) -> Object:
    """Return the object without its managedFields."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    return {**obj, "metadata": kept}


def _managers_before(request: Application, live: Object) -> Managers:
    """Return the managers of the live object; an untracked object gets one manager for all its
    fields."""
    if request.live is None:
        return {}
    metadata = request.live.get("metadata")
    try:
        managers = decode((metadata or {}).get("managedFields"))
    except BadManagedFields as problem:
        raise errors.Unclassified(f"failed to decode managed fields: {problem}") from problem
    if managers:
        return managers
    earlier = request.writer._replace(manager=BEFORE_FIRST_APPLY)
    return update_managers({}, earlier, None, {request.version: live}, request.schemas)


def _claimed_fields(request: Application) -> FieldSet:
    """Return the fields that the configuration claims at this endpoint."""
    fields = owned_in_object(request.schemas[request.version], request.config)
    skipped = request.writer.skipped(request.version)
    return without_subtrees(fields, {f"f:{name}": LEAF for name in skipped}) if skipped else fields


def _own_entry(
    request: Application, claimed: FieldSet, last: ManagedFieldsEntry | None
) -> ManagedFieldsEntry:
    return ManagedFieldsEntry(claimed, request.version, last.time if last is not None else None)


def _reconciled_managers(managers: Managers, schemas: Schemas, versions: set[str]) -> Managers:
    return {
        owner: reconcile(entry, schemas)
        for owner, entry in managers.items()
        if entry.api_version in versions
    }


def _at_manager_versions(pruned: Pruned, versions: set[str]) -> Step[dict[str, Object]]:
    """Return the pruned object at every version in which a manager owns fields."""
    missing = versions - pruned.elsewhere.keys()
    [found] = yield from convert_all([pruned.obj], missing)
    return {**pruned.elsewhere, **found}


def _managers_after_change(
    request: Application,
    managers: Managers,
    lives: Mapping[str, Object],
    news: Mapping[str, Object],
) -> Managers:
    """Return all managers' fields after the change from live to new. Raises ``ApplyConflict``."""
    changes: dict[str, Comparison] = {
        version: compare(
            request.schemas[version], lives[version], news[version], request.writer.skipped(version)
        )
        for version in {entry.api_version for entry in managers.values()} & news.keys()
    }
    others = {
        owner: entry
        for owner, entry in managers.items()
        if owner != request.identity and entry.api_version in changes
    }
    touched = {version: change.touched() for version, change in changes.items()}
    conflicts = {
        owner: intersection(entry.fields, touched[entry.api_version])
        for owner, entry in others.items()
    }
    _refuse(request, lives[request.version], conflicts)
    out: Managers = {request.identity: managers[request.identity]}
    for owner, entry in others.items():
        lost = union(touched[entry.api_version], changes[entry.api_version].removed)
        fields = difference(entry.fields, lost)
        if fields:
            out[owner] = entry._replace(fields=fields)
    return out


def _refuse(request: Application, live: Object, conflicts: Mapping[ManagerKey, FieldSet]) -> None:
    real = {owner: fields for owner, fields in conflicts.items() if fields}
    if request.force or not real:
        return
    if request.writer.manager == last_applied.MANAGER:
        schema = request.schemas[request.version]
        excused = last_applied.still_applied_fields(schema, live, request.version)
        real = {
            owner: rest for owner, fields in real.items() if (rest := difference(fields, excused))
        }
    if real:
        raise ApplyConflict(real)


def _with_applier_entry(
    request: Application, live: Object, new: Object, managers: Managers
) -> Applied:
    """Record the applier's entry; its time changes only with the object."""
    changed = not same_json_numbers(live, new)
    own = managers.pop(request.identity)
    fields = difference(own.fields, NEVER_OWNED)
    if fields:
        time = request.writer.now if changed else own.time
        managers[request.identity] = ManagedFieldsEntry(fields, request.version, time)
    obj: Object = copy_json(new)
    if request.writer.manager == last_applied.MANAGER:
        last_applied.update_annotation(obj, request.config)
        changed = changed or not same_json_numbers(live, obj)
    return Applied(obj, encode(managers) if managers else None, changed)
