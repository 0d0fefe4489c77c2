"""The last step of a create or update: commits a prepared object and returns the response's JSON.

``write.py`` and ``update_attempt.py`` call it after all checks. ``Backend`` (``stored/backend.py``)
writes to the store.
"""

from __future__ import annotations

from instar.base import errors, limits
from instar.base.errors import RequestTooLarge
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.make_entry import new_entry
from instar.server.registry.stored.prepared_object import PreparedObject


async def commit(
    context: Context, target: Target, prepared: PreparedObject, expected: int
) -> bytes:
    """Store the object and return it at the writer's version. Nothing can fail once it is
    stored."""
    _check_timely(target)
    check_size(prepared)
    draft = new_entry(prepared, target.suffix)
    stored = target.serving.storage
    draft.know(api_version=stored.api_version, labels=prepared.obj["metadata"].get("labels"))
    if target.version is stored and stored.pipeline.reads_alike(prepared.obj):
        draft.token = stored
    back, written_view = prepared.back, None
    if back is not None:
        written_view = target.codec.written_view(back, target.version)
    strategy = target.serving.strategy
    if strategy.store_new is not None and not expected:
        entry = await strategy.store_new(draft, prepared.obj)
    else:
        entry = await context.backend.put(target.resource.objects, draft, expected, written_view)
    if strategy.after_write is not None:
        await strategy.after_write(target.name)
    if written_view is not None:
        return written_view.view(entry)
    if entry is draft and draft.token is target.version:
        return draft.view
    view = target.codec.view_now(entry, target.version)
    return view if view is not None else (await target.codec.views([entry], target.version))[0]


def check_size(prepared: PreparedObject) -> None:
    """Refuse an object that became too large since its body was read."""
    if len(prepared.raw) > limits.MAX_STORED:
        raise RequestTooLarge(
            f"the object would take {len(prepared.raw)} bytes in the store, "
            f"limit is {limits.MAX_STORED}"
        )


def _check_timely(target: Target) -> None:
    """Refuse an object that was prepared under an older CRD: if the CRD is gone, or has another
    storage version since, of which a migration may assume that no write uses it any more."""
    if target.resource.closed:
        raise errors.NotFound("the server could not find the requested resource")
    if target.resource.serving.storage.api_version != target.serving.storage.api_version:
        raise errors.ServiceUnavailable(
            "the storage version changed while the request was worked on; nothing was written",
            retry_after=1,
        )
