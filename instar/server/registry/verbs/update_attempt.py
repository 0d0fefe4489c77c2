"""One attempt of an update: from the proposed object to the store, for PUT, PATCH, status, scale.

``write.update`` makes an attempt per try and makes the next one when another writer was faster.
The steps are synchronous segments between awaits; ``offload.run`` decides for each segment whether
it runs in the event loop or in a thread. Nothing is stored before every check has passed, and
nothing can fail afterwards: the conversions that the response needs are made before the commit.
"""

from __future__ import annotations

from instar.base import offload
from instar.base.json_values import Object
from instar.kube.api.encoding.json_text import encode_sorted
from instar.server.registry.resources.admission import Operation, Verb
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.stored.prepared_object import encode_at_revision
from instar.server.registry.verbs.commit import check_size, commit
from instar.server.registry.verbs.conflicts import check_revision, check_uid
from instar.server.registry.verbs.conversions import WriteConversions
from instar.server.registry.verbs.metadata import dedupe_owners, keep_server_fields
from instar.server.registry.verbs.ownership import Ownership, PendingOwnership, keep_times
from instar.server.registry.verbs.post_admission import prune, readmit_changed
from instar.server.registry.verbs.write_operation import refuse_invalid, write_operation
from instar.server.registry.verbs.write_request import Proposal, UpdateRules, WriteResult
from instar.wire.storage.store import Stale


class UpdateAttempt:
    """One try to store a proposed object over the entry it was made from."""

    __slots__ = (
        "_context",
        "_conversions",
        "_entry",
        "_given",
        "_managed",
        "_new",
        "_old",
        "_options",
        "_ownership",
        "_rules",
        "_size",
        "_target",
    )

    def __init__(
        self,
        context: Context,
        target: Target,
        entry: CacheEntry,
        old: Object,
        proposal: Proposal,
        options: WriteOptions,
        rules: UpdateRules,
    ) -> None:
        self._context = context
        self._target = target
        self._entry = entry
        self._old = old
        self._new = proposal.obj
        self._managed = proposal.managed
        self._given = proposal.given or options.given
        self._options = options
        self._rules = rules
        self._size = max(options.size, entry.size)
        self._conversions = proposal.conversions or WriteConversions(target.codec)
        self._ownership = Ownership(
            context, target, options, rules.subresource, self._conversions, self._size
        )

    async def store(self) -> WriteResult:
        """Check and commit the change. Raises ``Stale`` where the entry is not the latest."""
        pending = await offload.run(self._size, self._take_in)
        if pending is not None:
            await self._ownership.finish_update(pending)
        operation = await self._admit()
        try:
            await self._check(operation)
            return await self._finish(operation)
        except Exception as failure:
            await operation.give_back(failure)
            raise

    async def _finish(self, operation: Operation) -> WriteResult:
        released = self._is_released()
        if operation.changed:
            await offload.run(operation.size, prune, self._target, self._new)
        if released:
            return await self._finish_deletion()
        return await self._store(operation.size)

    def _take_in(self) -> PendingOwnership | None:
        """Restore the fields that only the server sets, and record the owners of fields."""
        new, old, target, rules = self._new, self._old, self._target, self._rules
        check_uid(target, new, old, rules)
        if new["metadata"].get("ownerReferences"):
            patched = not rules.uid_is_precondition
            dedupe_owners(new["metadata"], self._options.warn, patched=patched)
        keep_server_fields(new["metadata"], old["metadata"])
        self._conversions.starts_from(old, self._entry)
        if target.serving.converts_remotely and self._is_released():
            return None  # the object goes: its deletion must not depend on a webhook
        return self._ownership.track_update(new, old, self._managed)

    async def _admit(self) -> Operation:
        """Run mutating admission, then take in its changes and prepare the object for checks.

        A write through a part of the object (a Scale) shows admission that part.
        """
        new, old, rules, options = self._new, self._old, self._rules, self._options
        part, owned = None if rules.admitted else rules.part, new["metadata"].get("managedFields")
        if part is not None:
            new, old = part.show(new), part.show(old)
        operation = write_operation(
            Verb.UPDATE, self._target, new, old, options, self._size, rules.subresource
        )
        if part is not None:
            operation.kind = part.kind
        if not rules.admitted:
            await self._context.admission.admit(operation)
        await offload.run(operation.size, self._prepare, operation, owned)
        return operation

    def _prepare(self, operation: Operation, owned: list[Object] | None) -> None:
        new, old, rules = self._new, self._old, self._rules
        if operation.changed and rules.part is not None:
            assert operation.obj is not None
            rules.part.take(new, operation.obj)
        elif operation.changed:
            readmit_changed(operation, owned)
        check_revision(self._target, new, self._entry, rules)
        strategy, version = self._target.serving.strategy, self._target.version
        strategy.prepare_subresource(rules.subresource, new, old, version)
        keep_times(new, old)

    async def _check(self, operation: Operation) -> None:
        """Validate the object, then run validating admission."""
        admission, target = self._context.admission, self._target
        if target.serving.builtin:
            await admission.allocate(operation)
        await offload.run(target.version.check_cost(operation.size), self._validate)
        if not self._rules.admitted:
            await admission.validate(operation)

    def _validate(self) -> None:
        strategy, version = self._target.serving.strategy, self._target.version
        subresource, warn = self._rules.subresource, self._options.warn
        if version.judging_weight is None:
            version.learn_judging_weight()
        found = strategy.check_update(self._new, self._old, version, subresource, warn)
        if found:
            refuse_invalid(self._target, self._new, found, self._given)

    def _is_released(self) -> bool:
        """Return whether the object waits for its deletion and has neither a finalizer nor a
        grace period any more."""
        metadata = self._new["metadata"]
        if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
            return False
        if metadata.get("deletionGracePeriodSeconds"):
            return False  # a pod whose kubelet still has to stop it
        return self._target.serving.strategy.gone_when_released(self._new)

    async def _finish_deletion(self) -> WriteResult:
        """Delete the object that the update released, and answer with its last state."""
        target, entry, new = self._target, self._entry, self._new
        new["metadata"]["resourceVersion"] = str(entry.revision)
        if not self._options.dry_run:
            backend = self._context.backend
            await backend.remove(target.resource.objects, target.suffix, entry.revision)
        return WriteResult(encode_sorted(new))

    async def _store(self, size: int) -> WriteResult:
        """Commit the object, unless its bytes are the stored ones or the request is a dry run."""
        context, target, entry, old = self._context, self._target, self._entry, self._old
        codec, version = target.codec, target.version
        resealed = context.backend.needs_resealing(target.resource.objects, entry)
        if not resealed and self._is_as_stored():
            await self._confirm()
            return WriteResult(encode_at_revision(old, entry.revision))
        prepared = await codec.prepare(self._new, version, self._conversions.convert, size)
        if prepared.raw == entry.stored() and not resealed:
            await self._confirm()
            unchanged = codec.view_now(entry, version)
            return WriteResult(
                unchanged if unchanged is not None else encode_at_revision(old, entry.revision)
            )
        if self._options.dry_run:
            check_size(prepared)
            await self._confirm()
            seen = await codec.preview(prepared, version)
            return WriteResult(await offload.run(size, encode_at_revision, seen, entry.revision))
        return WriteResult(await commit(context, target, prepared, expected=entry.revision))

    def _is_as_stored(self) -> bool:
        """Return whether the object is unchanged at a version that only a webhook can convert, so
        that storing it would only convert it back.

        An object stored in an older version or without today's defaults is stored again.
        """
        serving, entry = self._target.serving, self._entry
        if not serving.converts_remotely or self._target.version is serving.storage:
            return False
        settled = entry.token is serving.storage and entry.normal is None
        return settled and encode_at_revision(self._new, 0) == encode_at_revision(self._old, 0)

    async def _confirm(self) -> None:
        """Raise ``Stale`` if the entry is outdated: without a commit the store compares no
        revision."""
        target, entry = self._target, self._entry
        if not await self._context.backend.is_current(target.resource.objects, entry):
            raise Stale(target.suffix, entry.revision, 0)
