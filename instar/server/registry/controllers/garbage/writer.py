"""Writes of the garbage collector: deletions, and removal of owner references and finalizers.

Called by ``collector.py``. Each write is guarded by uid, or by the revision that was examined.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.base import errors
from instar.base.json_values import Object
from instar.kube.access.attributes import AUTHENTICATED, Attributes, User
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Resource, Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.delete import delete
from instar.server.registry.verbs.delete_options import DeleteOptions
from instar.server.registry.verbs.write import update
from instar.server.registry.verbs.write_request import Proposal, UpdateRules

_USER = User(
    "system:serviceaccount:kube-system:generic-garbage-collector",
    ("system:serviceaccounts", "system:serviceaccounts:kube-system", AUTHENTICATED),
)
_MANAGER = "instar-garbage-collector"
_RULES = UpdateRules(unconditional=True, uid_is_precondition=False)


async def remove(context: Context, resource: Resource, suffix: str, uid: str, policy: str) -> None:
    """Delete a dependent with this uid; one that is gone already is fine."""
    target = _target(resource, suffix)
    asked = _attributes(target, "delete")
    try:
        await delete(
            context, target, DeleteOptions(policy=policy, uid=uid, answered=False, asked=asked)
        )
    except errors.NotFound:
        return


async def drop_references(
    context: Context, resource: Resource, suffix: str, uids: set[str]
) -> None:
    """Remove the owner references to these uids."""

    def change(metadata: Object) -> None:
        found = metadata.get("ownerReferences") or ()
        _set(metadata, "ownerReferences", [one for one in found if one.get("uid") not in uids])

    await _change(context, resource, suffix, change)


async def unblock(context: Context, resource: Resource, suffix: str) -> None:
    """Clear ``blockOwnerDeletion``, so that a cycle of owners can be deleted."""

    def change(metadata: Object) -> None:
        found = metadata.get("ownerReferences") or ()
        metadata["ownerReferences"] = [{**one, "blockOwnerDeletion": False} for one in found]

    await _change(context, resource, suffix, change)


async def drop_finalizer(context: Context, resource: Resource, suffix: str, name: str) -> None:
    def change(metadata: Object) -> None:
        found = metadata.get("finalizers") or ()
        _set(metadata, "finalizers", [one for one in found if one != name])

    await _change(context, resource, suffix, change)


async def _change(
    context: Context, resource: Resource, suffix: str, change: Callable[[Object], None]
) -> None:
    async def propose(old: Object, entry: CacheEntry) -> Proposal:
        metadata = dict(old["metadata"])
        change(metadata)
        return Proposal({**old, "metadata": metadata})

    target = _target(resource, suffix)
    asked = _attributes(target, "patch")
    entry = resource.objects.entries.get(suffix)
    options = WriteOptions(
        manager=_MANAGER,
        field_validation="Ignore",
        asked=asked,
        size=0 if entry is None else entry.size,
    )
    try:
        await update(context, target, propose, options, _RULES)
    except errors.NotFound:
        return


def _target(resource: Resource, suffix: str) -> Target:
    serving = resource.serving
    namespace, _, name = suffix.rpartition("/")
    return Target(resource, serving, resource.codec, serving.storage, namespace, name)


def _attributes(target: Target, verb: str) -> Attributes:
    serving = target.serving
    return Attributes(
        _USER,
        verb,
        serving.group,
        target.version.name,
        serving.plural,
        "",
        target.namespace,
        target.name,
    )


def _set(metadata: Object, name: str, value: list[Object] | list[str]) -> None:
    if value:
        metadata[name] = value
    else:
        metadata.pop(name, None)
