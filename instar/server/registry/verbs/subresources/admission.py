"""Admission of subresource requests that store nothing: bindings, evictions, reviews, connections.

``binding.py``, ``eviction.py``, ``server/rest/pods/pod_verbs.py``, ``server/rest/verbs.py`` and
``server/access/account_tokens.py`` call it; the admission plugins see a create or a connect.
"""

from __future__ import annotations

from instar.base.json_values import Object
from instar.kube.api.names import GroupVersionKind
from instar.server.registry.resources.admission import Operation, Verb
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Target


async def admit_posted_object(
    context: Context,
    target: Target,
    obj: Object,
    options: WriteOptions,
    subresource: str = "",
    kind: GroupVersionKind | None = None,
) -> None:
    """Run admission for a posted object (a Binding, an Eviction, a review), which it may change."""
    operation = _operation(Verb.CREATE, target, obj, options, subresource, kind)
    operation.options = options
    await context.admission.admit(operation)
    await context.admission.validate(operation)


async def admit_connection(
    context: Context, target: Target, obj: Object, options: WriteOptions, subresource: str
) -> None:
    """Run admission for a connection (exec, attach, proxy); ``obj`` is its options object."""
    kind = GroupVersionKind("", "v1", obj["kind"])
    operation = _operation(Verb.CONNECT, target, obj, options, subresource, kind)
    await context.admission.admit(operation)
    await context.admission.validate(operation)


def _operation(
    verb: Verb,
    target: Target,
    obj: Object,
    options: WriteOptions,
    subresource: str,
    kind: GroupVersionKind | None,
) -> Operation:
    return Operation(
        verb,
        options.asked,
        target,
        obj,
        None,
        subresource,
        options.dry_run,
        options.warn,
        name=target.name or (obj.get("metadata") or {}).get("name", ""),
        kind=kind,
        annotate=options.annotate,
        seconds_left=options.seconds_left,
    )
