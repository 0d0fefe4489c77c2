"""Create, update, delete: the order of steps on the way to the store, for every resource.

A step either changes the object or refuses it; nothing is committed before all have passed, and
an error after the commit is impossible by construction: whatever can fail (a webhook's answer to
the way back) is asked before. ``update`` is the one loop behind PUT, PATCH, status and scale.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from instar.base import errors, offload
from instar.base.field_errors import FieldError
from instar.base.json_values import Object, copy_json
from instar.kube.access.authorizers import authorize
from instar.kube.api.encoding.json_text import encode_sorted
from instar.server.registry.resources.admission import Operation, Verb
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.prepared_object import revised
from instar.server.registry.verbs.commit import commit
from instar.server.registry.verbs.conflicts import check_revision, check_uid, exists, modified
from instar.server.registry.verbs.conversions import Conversions
from instar.server.registry.verbs.metadata import (
    check_names,
    check_unrevised,
    dedupe_owners,
    fill_for_create,
    keep_server_fields,
    wipe_for_create,
)
from instar.server.registry.verbs.ownership import Ownership, keep_times
from instar.server.registry.verbs.post_admission import pruned, readmit_changed, readmit_new
from instar.server.registry.verbs.write_request import Proposal, Propose, UpdateRules, Written
from instar.wire.storage.store import Stale

_GENERATE_ATTEMPTS = 8
_RULES_WEIGH = 4
"""As much as so many times the same object without rules, when it comes to leaving the loop."""
_UPDATE_ATTEMPTS = 100


async def create(
    context: Context,
    target: Target,
    obj: Object,
    options: WriteOptions,
    managed: list[Object] | None = None,
) -> Written:
    """``obj`` is decoded, pruned and defaulted already; it is changed in place."""
    serving = target.serving
    metadata = obj["metadata"]
    if serving.namespaced:
        metadata["namespace"] = target.namespace
    else:
        metadata.pop("namespace", None)
    if not options.dry_run:
        check_unrevised(metadata)
    _check_staying(target, metadata.get("name", ""))
    wipe_for_create(metadata)
    if metadata.get("ownerReferences"):
        dedupe = partial(dedupe_owners, metadata, options.warn, patched=False)
        await offload.run(options.size, dedupe)
    await Ownership(context, target, options).on_create(obj, managed)
    owned = metadata.get("managedFields")
    operation = _operation(Verb.CREATE, target, obj, None, options, options.size)
    await context.admission.admit(operation)
    size = operation.size
    if operation.changed:
        await offload.run(size, partial(readmit_new, operation, owned))
    metadata = obj["metadata"]
    fill_for_create(metadata, uid=context.new_uid(), created=context.timestamp())
    generated = not metadata.get("name") and bool(metadata.get("generateName"))
    if generated:
        metadata["name"] = context.generated_name(metadata["generateName"])
    if offload.is_small(size):
        serving.strategy.prepare_create(obj, target.version)
    else:
        await offload.apart(lambda: serving.strategy.prepare_create(obj, target.version))
    if serving.builtin:
        context.admission.allocate(operation)
    check = partial(serving.strategy.check_create, obj, target.version, options.warn)
    if _is_quickly_judged(target, size):
        _judge(target, obj, check)
    else:
        await offload.apart(partial(_judge, target, obj, check))
    for attempt in range(_GENERATE_ATTEMPTS if generated else 1):
        if attempt:
            metadata["name"] = context.generated_name(metadata["generateName"])
            operation.notes.clear()
        try:
            return await _store_new(context, target.named(metadata["name"]), operation, options)
        except Stale:
            continue
    await context.backend.consistent()
    raise exists(target.named(metadata["name"]), generated)


def _check_staying(target: Target, name: str) -> None:
    """The CRD may not be on its way out: it would leave the object behind."""
    if target.resource.crd.is_true("Terminating"):
        text = "create not allowed while custom resource definition is terminating"
        raise errors.forbidden(target.serving.group, target.serving.plural, name, text)


async def _store_new(
    context: Context, target: Target, operation: Operation, options: WriteOptions
) -> Written:
    assert operation.obj is not None
    obj, size = operation.obj, operation.size
    if operation.changed:
        obj = await offload.run(size, lambda: pruned(target, copy_json(operation.obj)))
    codec, version = target.codec, target.version
    prepared = codec.prepare_now(obj, version, size)
    if prepared is None:
        prepared = await codec.prepare(obj, version, size=size)
    await context.admission.validate(operation)
    if options.dry_run:
        await context.backend.consistent()
        if target.entry() is not None:
            raise Stale(target.suffix, 0, 1)
        seen = await target.codec.preview(prepared, target.version)
        return Written(await offload.run(size, lambda: encode_sorted(seen)), created=True)
    _check_staying(target, target.name)
    view = await commit(context, target, prepared, expected=0)
    return Written(view, created=True)


async def replace(
    context: Context, target: Target, obj: Object, options: WriteOptions, subresource: str = ""
) -> Written:
    """PUT: the whole object as the client wants it, decoded already."""
    check_names(obj, target)
    strategy = target.serving.strategy
    if strategy.creates_on_update and not subresource and not await _exists_now(context, target):
        check_uid(target, obj, {"metadata": {}}, UpdateRules())
        obj["metadata"].pop("resourceVersion", None)
        await may_create(context, options)
        return await create(context, target, obj, options)

    async def propose(old: Object, entry: CacheEntry) -> Proposal:
        return Proposal(copy_json(obj))

    rules = UpdateRules(subresource, unconditional=strategy.unconditional_update)
    return await update(context, target, propose, options, rules)


async def may_create(context: Context, options: WriteOptions) -> None:
    """Who was let in to update makes something new: that is another question."""
    await authorize(context.authorizer, options.asked._replace(verb="create"))


async def _exists_now(context: Context, target: Target) -> bool:
    if target.entry() is None:
        await context.backend.consistent()
    return target.entry() is not None


async def update(
    context: Context,
    target: Target,
    propose: Propose,
    options: WriteOptions,
    rules: UpdateRules,
) -> Written:
    """Read, let ``propose`` change it, check, commit; again when someone else was faster."""
    for attempt in range(_UPDATE_ATTEMPTS):
        if attempt:
            await context.backend.consistent()
        entry = await _current(context, target)
        try:
            old = await target.codec.object(entry, target.version)
            proposal = await propose(old, entry)
            return await _store_changed(context, target, entry, old, proposal, options, rules)
        except Stale:
            continue
        except errors.ServiceUnavailable:
            raise  # it may have been written: nobody but the client may try again
        except errors.ApiError:
            # Judged by what the cache shows; another replica's write may be on its way to it.
            if attempt or await context.backend.is_current(target.resource.objects, entry):
                raise
    raise modified(target)


async def _store_changed(
    context: Context,
    target: Target,
    entry: CacheEntry,
    old: Object,
    proposal: Proposal,
    options: WriteOptions,
    rules: UpdateRules,
) -> Written:
    new, strategy = proposal.obj, target.serving.strategy
    size = max(options.size, entry.size)
    check_uid(target, new, old, rules)
    if new["metadata"].get("ownerReferences"):
        late = not rules.uid_is_precondition
        dedupe = partial(dedupe_owners, new["metadata"], options.warn, patched=late)
        await offload.run(size, dedupe)
    keep_server_fields(new["metadata"], old["metadata"])
    conversions = proposal.conversions or Conversions(target.codec)
    conversions.starts_from(old, entry)
    if not (_goes(target, new) and target.serving.converts_remotely):
        ownership = Ownership(context, target, options, rules.subresource, conversions, size)
        await ownership.on_update(new, old, proposal.managed)
    operation = await _admitted_change(context, target, new, old, options, rules, size)
    size = operation.size
    check_revision(target, new, entry, rules)
    if offload.is_small(size):
        _prepare_change(target, rules, new, old)
    else:
        await offload.apart(partial(_prepare_change, target, rules, new, old))
    if target.serving.builtin:
        context.admission.allocate(operation)
    goes = _goes(target, new)
    version, part = target.version, rules.subresource
    check = partial(strategy.check_update, new, old, version, part, options.warn)
    if _is_quickly_judged(target, size):
        _judge(target, new, check)
    else:
        await offload.apart(partial(_judge, target, new, check))
    if not rules.admitted:
        await context.admission.validate(operation)
    if operation.changed:
        await offload.run(size, partial(pruned, target, new))
    if goes:
        return await _finish_deletion(context, target, entry, new, options)
    resealed = context.backend.sealed_anew(target.resource.objects, entry)
    if not resealed and _is_as_stored(target, entry, new, old):
        await _confirm(context, target, entry)
        return Written(revised(old, entry.revision))
    prepared = target.codec.prepare_now(new, version, size)
    if prepared is None:
        prepared = await target.codec.prepare(new, version, conversions.convert, size)
    if prepared.raw == entry.stored() and not resealed:
        await _confirm(context, target, entry)
        unchanged = target.codec.view_now(entry, target.version)
        return Written(unchanged if unchanged is not None else revised(old, entry.revision))
    if options.dry_run:
        await _confirm(context, target, entry)
        seen = await target.codec.preview(prepared, target.version)
        return Written(await offload.run(size, lambda: revised(seen, entry.revision)))
    return Written(await commit(context, target, prepared, expected=entry.revision))


async def _admitted_change(
    context: Context,
    target: Target,
    new: Object,
    old: Object,
    options: WriteOptions,
    rules: UpdateRules,
    size: int,
) -> Operation:
    """``new`` as admission leaves it; what writes through a part of the object is seen as that."""
    part = rules.part
    if rules.admitted:
        return _operation(Verb.UPDATE, target, new, old, options, size, rules.subresource)
    if part is None:
        owned = new["metadata"].get("managedFields")
        operation = _operation(Verb.UPDATE, target, new, old, options, size, rules.subresource)
        await context.admission.admit(operation)
        if operation.changed:
            await offload.run(operation.size, partial(readmit_changed, operation, owned))
        return operation
    shown, before = part.show(new), part.show(old)
    operation = _operation(Verb.UPDATE, target, shown, before, options, size, rules.subresource)
    operation.kind = part.kind
    await context.admission.admit(operation)
    if operation.changed:
        part.take(new, shown)
    return operation


def _prepare_change(target: Target, rules: UpdateRules, new: Object, old: Object) -> None:
    target.serving.strategy.prepare_subresource(rules.subresource, new, old, target.version)
    keep_times(new, old)


def _goes(target: Target, new: Object) -> bool:
    """Whether the update releases an object that is to be deleted."""
    metadata = new["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    return target.serving.strategy.gone_when_released(new)


def _operation(
    verb: Verb,
    target: Target,
    obj: Object,
    old: Object | None,
    options: WriteOptions,
    size: int,
    subresource: str = "",
) -> Operation:
    return Operation(
        verb,
        options.asked,
        target,
        obj,
        old,
        subresource,
        options.dry_run,
        options.warn,
        name=target.name or obj["metadata"].get("name", ""),
        options=options,
        annotate=options.annotate,
        seconds_left=options.seconds_left,
        size=size,
    )


def _is_as_stored(target: Target, entry: CacheEntry, new: Object, old: Object) -> bool:
    """Whether storing would only ask a webhook to undo what it has just done.

    Not for an object in an older version or short of defaults: there a write changes the bytes.
    """
    serving = target.serving
    if not serving.converts_remotely or target.version is serving.storage:
        return False
    settled = entry.token is serving.storage and entry.normal is None
    return settled and revised(new, 0) == revised(old, 0)


async def _confirm(context: Context, target: Target, entry: CacheEntry) -> None:
    """Nothing is committed, so no revision is compared: see that the entry is not outdated."""
    if not await context.backend.is_current(target.resource.objects, entry):
        raise Stale(target.suffix, entry.revision, 0)


async def _current(context: Context, target: Target) -> CacheEntry:
    entry = target.entry()
    if entry is None:
        await context.backend.consistent()
        entry = target.entry()
    if entry is None:
        raise errors.not_found(target.serving.group, target.serving.plural, target.name)
    return entry


async def _finish_deletion(
    context: Context, target: Target, entry: CacheEntry, new: Object, options: WriteOptions
) -> Written:
    """The last finalizer went: the update turns into the deletion it was waiting for."""
    new["metadata"]["resourceVersion"] = str(entry.revision)
    if not options.dry_run:
        await context.backend.remove(target.resource.objects, target.suffix, entry.revision)
    return Written(encode_sorted(new))


def _is_quickly_judged(target: Target, size: int) -> bool:
    """Rules are more work than what their object's size says."""
    return offload.is_small(size if target.version.rules is None else size * _RULES_WEIGH)


def _judge(target: Target, obj: Object, check: Callable[[], list[FieldError]]) -> None:
    """Refuse what is wrong, which of a large object takes as long to say as to find."""
    found = check()
    if found:
        name, told = obj["metadata"].get("name", ""), target.serving.strategy.told_group
        group = target.serving.group if told is None else told
        raise errors.invalid(group, obj.get("kind", ""), name, found)
