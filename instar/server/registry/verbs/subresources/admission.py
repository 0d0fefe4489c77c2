"""What is asked of an object rather than stored: admission sees it as a write all the same."""

from __future__ import annotations

from instar.base.json_values import Object
from instar.kube.api.names import GroupVersionKind
from instar.server.registry.resources.admission import Operation, Verb
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Target


async def admit_question(
    context: Context,
    target: Target,
    obj: Object,
    options: WriteOptions,
    subresource: str = "",
    kind: GroupVersionKind | None = None,
) -> None:
    """``obj`` is what is posted (a Binding, an Eviction, a review); it may be changed in place."""
    operation = _operation(Verb.CREATE, target, obj, options, subresource, kind)
    operation.options = options
    await context.admission.admit(operation)
    await context.admission.validate(operation)


async def admit_connection(
    context: Context, target: Target, obj: Object, options: WriteOptions, subresource: str
) -> None:
    """``obj`` says how somebody wants to be connected: PodExecOptions and so on."""
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
