"""Server-side apply: merges an applied configuration into the stored object, or creates it.

The PATCH handler of ``server/rest/verbs.py`` calls it, and ``subresources/scaling.py`` uses
``drive``. ``kube/apply`` merges, in a generator that yields the conversions it needs; this module
converts and passes the result to ``write.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from instar.base import errors, offload
from instar.base.json_values import Object, copy_json
from instar.kube.api.encoding.object_text import Repeated
from instar.kube.api.names import parse_group_version
from instar.kube.apply.applying import Application, Applied, apply_patch
from instar.kube.apply.conversion_requests import NeededConversion, Step
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.conversions import WriteConversions
from instar.server.registry.verbs.growing_step import run_growing_step
from instar.server.registry.verbs.metadata import check_names
from instar.server.registry.verbs.ownership import Ownership
from instar.server.registry.verbs.write import create, may_create, update
from instar.server.registry.verbs.write_request import Proposal, UpdateRules, WriteResult


async def apply_configuration(
    context: Context,
    target: Target,
    config: Object,
    duplicates: Sequence[Repeated],
    options: WriteOptions,
    subresource: str,
) -> WriteResult:
    """Create or merge; ``config`` is the applied document as sent."""
    _check_identity(target, config)

    async def merged(live: Object | None, conversions: WriteConversions, size: int) -> Applied:
        ownership = Ownership(context, target, options, subresource, conversions)
        request = Application(
            writer=ownership.writer(),
            config=copy_json(config),
            live=live,
            schemas={v.api_version: v.typed for v in target.serving.versions.values()},
            force=options.force,
        )
        applied = await drive(ownership, target, apply_patch(request), size)
        _report(duplicates, options)
        return applied

    async def propose(old: Object, entry: CacheEntry) -> Proposal:
        conversions = WriteConversions(target.codec)
        conversions.starts_from(old, entry)
        size = max(options.size, entry.size)
        applied = await merged(old, conversions, size)
        obj = applied.obj
        obj["metadata"].setdefault("resourceVersion", str(entry.revision))
        if applied.changed:
            # What stays as it is gets no defaults: the storage version may lack the field, and
            # every apply would write.
            adopt = target.serving.strategy.adopt
            await run_growing_step(target, options, size, adopt, obj, target.version)
        check_names(obj, target)
        return Proposal(obj, applied.managed_fields or [], conversions)

    async def created() -> Applied:
        return await merged(None, WriteConversions(target.codec), options.size)

    while True:
        if target.entry() is None:
            await context.backend.consistent()
        if target.entry() is not None or subresource:
            rules = UpdateRules(subresource, unconditional=True, uid_is_precondition=False)
            try:
                return await update(context, target, propose, options, rules)
            except errors.NotFound:
                if subresource or target.entry() is not None:
                    raise
        try:
            return await _create(context, target, config, await created(), options)
        except errors.AlreadyExists:
            if options.dry_run or target.entry() is None:
                raise


async def _create(
    context: Context, target: Target, config: Object, applied: Applied, options: WriteOptions
) -> WriteResult:
    uid = (config.get("metadata") or {}).get("uid")
    if uid:
        raise errors.conflict(
            target.serving.group,
            target.serving.plural,
            target.name,
            f"uid mismatch: the provided object specified uid {uid}, and no existing object was "
            "found",
        )
    obj = applied.obj
    adopt = target.serving.strategy.adopt
    await run_growing_step(target, options, options.size, adopt, obj, target.version)
    obj["metadata"].setdefault("name", target.name)
    check_names(obj, target)
    await may_create(context, options)
    return await create(context, target, obj, options, applied.managed_fields or [])


async def drive(ownership: Ownership, target: Target, step: Step[Applied], size: int) -> Applied:
    """Run the merge to its end: convert what each step needs, in one batch per pair of versions."""
    answers: list[Object | None] | None = None
    while True:
        need = await offload.run(size, _advance, step, answers)
        if isinstance(need, Applied):
            return need
        answers = await _converted(ownership, target, need)


def _advance(
    step: Step[Applied], answers: list[Object | None] | None
) -> Sequence[NeededConversion] | Applied:
    """Return the conversions that the apply needs next, or its result."""
    try:
        return next(step) if answers is None else step.send(answers)
    except StopIteration as done:
        result: Applied = done.value
        return result


async def _converted(
    ownership: Ownership, target: Target, need: Sequence[NeededConversion]
) -> list[Object | None]:
    answers: list[Object | None] = [None] * len(need)
    batches: dict[tuple[str, str], list[int]] = {}
    for position, (obj, wanted) in enumerate(need):
        batches.setdefault((obj.get("apiVersion", ""), wanted), []).append(position)
    for (source, wanted), positions in batches.items():
        objects = [need[position].obj for position in positions]
        found = await ownership.converted(objects, wanted, source=source)
        for position, obj in zip(positions, found or (), strict=False):
            answers[position] = obj
    return answers


def _check_identity(target: Target, config: Object) -> None:
    version = target.version
    if config.get("apiVersion") != version.api_version or config.get("kind") != version.kind:
        raise errors.BadRequest(f"invalid object type: {_type_of(config)}")
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields"):
        raise errors.BadRequest("metadata.managedFields must be nil")


def _type_of(config: Object) -> str:
    """Return the type as upstream prints it; an empty one where apiVersion is malformed."""
    try:
        given = parse_group_version(config.get("apiVersion") or "")
    except ValueError:
        return "/, Kind="
    return f"{given.group}/{given.version}, Kind={config.get('kind', '')}"


def _report(duplicates: Sequence[Repeated], options: WriteOptions) -> None:
    if not duplicates or options.field_validation == "Ignore":
        return
    if options.field_validation == "Strict":
        lines = "\n".join(f"  {text}" for text in duplicates)
        raise errors.BadRequest(
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
            + lines
        )
    for text in duplicates:
        options.warn(str(text))
