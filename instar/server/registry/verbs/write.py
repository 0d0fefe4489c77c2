"""Create, replace and update: the order of steps on the way to the store, for every resource.

The REST handlers (``server/rest``), ``patch.py``, ``apply.py``, ``subresources/scaling.py`` and the
controllers call it with decoded objects. The steps are synchronous segments between awaits;
``offload.run`` decides for each segment whether it runs in the event loop or in a thread. A step
changes the object or refuses it; nothing is stored before all have passed, and nothing can fail
after the commit. ``update`` is the retry loop behind PUT, PATCH, status and scale.
"""

from __future__ import annotations

from instar.base import errors, offload
from instar.base.json_values import Object, copy_json
from instar.kube.access.authorizers import authorize
from instar.kube.api.encoding.json_text import encode_sorted
from instar.server.registry.resources.admission import Operation, Verb
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.commit import check_size, commit
from instar.server.registry.verbs.conflicts import check_uid, exists, modified_error
from instar.server.registry.verbs.metadata import (
    check_names,
    check_unrevised,
    dedupe_owners,
    fill_for_create,
    wipe_for_create,
)
from instar.server.registry.verbs.ownership import Ownership
from instar.server.registry.verbs.post_admission import prune, readmit_new
from instar.server.registry.verbs.update_attempt import UpdateAttempt
from instar.server.registry.verbs.write_operation import refuse_invalid, write_operation
from instar.server.registry.verbs.write_request import Proposal, Propose, UpdateRules, WriteResult
from instar.wire.storage.store import Stale

_GENERATE_ATTEMPTS = 8
_UPDATE_ATTEMPTS = 100


async def create(
    context: Context,
    target: Target,
    obj: Object,
    options: WriteOptions,
    managed: list[Object] | None = None,
) -> WriteResult:
    """Store a new object, which is decoded, pruned and defaulted already; it is changed in place.
    ``managed`` are its managedFields, where an apply has decided them."""
    ownership = Ownership(context, target, options)
    await offload.run(options.size, _take_in_new, ownership, target, obj, options, managed)
    owned = obj["metadata"].get("managedFields")
    operation = write_operation(Verb.CREATE, target, obj, None, options, options.size)
    await context.admission.admit(operation)
    size = operation.size
    generated = await offload.run(size, _prepare_new, context, operation, owned, context.new_uid())
    try:
        if target.serving.builtin:
            await context.admission.allocate(operation)
        await offload.run(target.version.check_cost(size), _check_new, target, obj, options)
        return await _store_named(context, target, operation, options, generated=generated)
    except Exception as failure:
        await operation.give_back(failure)
        raise


async def _store_named(
    context: Context,
    target: Target,
    operation: Operation,
    options: WriteOptions,
    *,
    generated: bool,
) -> WriteResult:
    """Store the object; with a generated name try others while the name is taken."""
    assert operation.obj is not None
    metadata = operation.obj["metadata"]
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


def _take_in_new(
    ownership: Ownership,
    target: Target,
    obj: Object,
    options: WriteOptions,
    managed: list[Object] | None,
) -> None:
    """Set the namespace, drop the fields that only the server sets, record the owner of fields."""
    metadata = obj["metadata"]
    if target.serving.namespaced:
        metadata["namespace"] = target.namespace
    else:
        metadata.pop("namespace", None)
    if not options.dry_run:
        check_unrevised(metadata)
    _refuse_while_terminating(target, metadata.get("name", ""))
    wipe_for_create(metadata)
    if metadata.get("ownerReferences"):
        dedupe_owners(metadata, options.warn, patched=False)
    ownership.track_create(obj, managed)


def _prepare_new(
    context: Context, operation: Operation, owned: list[Object] | None, uid: str
) -> bool:
    """Take in what admission changed, then fill in what the server sets. Return whether the name
    was generated."""
    obj, target = operation.obj, operation.target
    assert obj is not None
    if operation.changed:
        readmit_new(operation, owned)
    metadata = obj["metadata"]
    fill_for_create(metadata, uid=uid, created=context.timestamp())
    generated = not metadata.get("name") and bool(metadata.get("generateName"))
    if generated:
        metadata["name"] = context.generated_name(metadata["generateName"])
    target.serving.strategy.prepare_create(obj, target.version)
    return generated


def _check_new(target: Target, obj: Object, options: WriteOptions) -> None:
    if target.version.judging_weight is None:
        target.version.learn_judging_weight()
    found = target.serving.strategy.check_create(obj, target.version, options.warn)
    if found:
        refuse_invalid(target, obj, found, options.given)


def _refuse_while_terminating(target: Target, name: str) -> None:
    """Refuse new objects of a CRD that is being deleted: it would leave them behind."""
    if target.resource.crd.is_true("Terminating"):
        text = "create not allowed while custom resource definition is terminating"
        raise errors.forbidden(target.serving.group, target.serving.plural, name, text)


async def _store_new(
    context: Context, target: Target, operation: Operation, options: WriteOptions
) -> WriteResult:
    """Commit a new object under its name. Raises ``Stale`` where the name is taken."""
    assert operation.obj is not None
    obj, size = operation.obj, operation.size
    if operation.changed:
        obj = await offload.run(size, _pruned_copy, target, obj)
    prepared = await target.codec.prepare(obj, target.version, size=size)
    await context.admission.validate(operation)
    if options.dry_run:
        check_size(prepared)
        await context.backend.consistent()
        if target.entry() is not None:
            raise Stale(target.suffix, 0, 1)
        seen = await target.codec.preview(prepared, target.version)
        return WriteResult(await offload.run(size, encode_sorted, seen), created=True)
    _refuse_while_terminating(target, target.name)
    view = await commit(context, target, prepared, expected=0)
    return WriteResult(view, created=True)


def _pruned_copy(target: Target, obj: Object) -> Object:
    """Return what is stored; validating admission still sees what mutating admission left."""
    copy: Object = copy_json(obj)
    prune(target, copy)
    return copy


async def replace(
    context: Context, target: Target, obj: Object, options: WriteOptions, subresource: str = ""
) -> WriteResult:
    """Handle a PUT: ``obj`` is the whole object that the client sent, decoded."""
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
    """Authorize a create that an update or an apply turned into."""
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
) -> WriteResult:
    """Read the object, let ``propose`` change it, check and commit it; try again when another
    writer was faster."""
    for attempt in range(_UPDATE_ATTEMPTS):
        if attempt:
            await context.backend.consistent()
        entry = await _current(context, target)
        try:
            old = await target.codec.object(entry, target.version)
            proposal = await propose(old, entry)
            attempted = UpdateAttempt(context, target, entry, old, proposal, options, rules)
            return await attempted.store()
        except Stale:
            continue
        except errors.ServiceUnavailable:
            raise  # the write may have happened: only the client may try again
        except errors.ApiError:
            # The cache may be behind another replica's write: judge again by the latest state.
            if attempt or await context.backend.is_current(target.resource.objects, entry):
                raise
    raise modified_error(target)


async def _current(context: Context, target: Target) -> CacheEntry:
    entry = target.entry()
    if entry is None:
        await context.backend.consistent()
        entry = target.entry()
    if entry is None:
        raise errors.not_found(target.serving.group, target.serving.plural, target.name)
    return entry
