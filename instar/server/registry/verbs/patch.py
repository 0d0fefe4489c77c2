"""Patch (JSON, merge, strategic merge): applies the change to the current object and updates it.

The PATCH handler of ``server/rest/verbs.py`` calls it. ``write.update`` repeats the change on the
latest object when another writer was faster. Members that the patch did not change are in normal
form already and are not decoded again; changed members are decoded like a request body. Server-side
apply is ``apply.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import orjson

from instar.base.errors import BadRequest, Invalid, Undecodable
from instar.base.field_errors import invalid
from instar.base.json_values import Object
from instar.kube.api.encoding.object_text import MalformedObject, object_of, read_json
from instar.kube.patches.documents import Patch
from instar.kube.schema.json_types import ABSENT
from instar.server.registry.resources.context import Context, WriteOptions
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.growing_step import run_growing_step
from instar.server.registry.verbs.metadata import check_names
from instar.server.registry.verbs.write import update
from instar.server.registry.verbs.write_request import Proposal, UpdateRules, WriteResult

Quote = Callable[[], str]
"""Returns what an error shows of the patch or its result."""


async def patch(
    context: Context, target: Target, change: Patch, options: WriteOptions, subresource: str = ""
) -> WriteResult:
    """Patch one object."""

    def patched(old: Object, entry: CacheEntry) -> Object:
        patched = change.apply(old)
        kept = _kept_members(target, entry, old, patched)

        def quote() -> str:
            # Decoding may have changed ``patched`` in place.
            shown = change.apply(old) if change.grafts else patched
            return change.quote(shown, old)

        obj = _decode_patched(target, patched, kept, quote, change, options)
        check_names(obj, target)
        return obj

    async def propose(old: Object, entry: CacheEntry) -> Proposal:
        size = max(options.size, entry.size)
        obj = await run_growing_step(target, options, size, patched, old, entry)
        given = None if target.serving.strategy.keeps_nulls else partial(change.apply, old)
        return Proposal(obj, given=given)

    rules = UpdateRules(
        subresource,
        unconditional=target.serving.strategy.unconditional_update,
        uid_is_precondition=False,
    )
    return await update(context, target, propose, options, rules)


class _UntouchedMembers(NamedTuple):
    """Members that a patch did not touch: they need not be decoded, pruned or checked."""

    members: Object
    metadata: Object
    """Untouched members of metadata, among them ``managedFields``: often the larger half of an
    object."""
    all: bool = False
    """Whether all members inside touched members are normal, too."""


def _kept_members(
    target: Target, entry: CacheEntry, old: Object, patched: Any
) -> _UntouchedMembers:
    """Return the untouched members. None in an object stored at another version that has defaults
    here, because reading it did not apply them."""
    version = target.version
    if not target.serving.strategy.piecewise or not isinstance(patched, dict):
        return _UntouchedMembers({}, {})
    metadata, before = patched.get("metadata"), old["metadata"]
    if isinstance(metadata, dict):
        metadata = {k: v for k, v in metadata.items() if v is before.get(k, ABSENT)}
    else:
        metadata = {}
    if version.compiled.has_defaults and entry.api_version != version.api_version:
        return _UntouchedMembers({}, metadata)
    members = {
        name: value
        for name, value in patched.items()
        if value.__class__ is dict and value is old.get(name) and name != "metadata"
    }
    return _UntouchedMembers(members, metadata, all=True)


def _decode_patched(
    target: Target,
    patched: Any,
    kept: _UntouchedMembers,
    quote: Quote,
    change: Patch,
    options: WriteOptions,
) -> Object:
    """Return the patch's result as an object of the version; unknown fields are reported."""
    if change.from_values and isinstance(patched, dict):  # Go's type knows its kind
        patched |= {"apiVersion": target.version.api_version, "kind": target.serving.kind}
    changed, members, metadata = patched, kept.members, kept.metadata
    if members or metadata:
        changed = {name: value for name, value in patched.items() if name not in members}
    if metadata:
        given = patched["metadata"]
        changed["metadata"] = {name: given[name] for name in given if name not in metadata}
    if change.grafts and kept.all and metadata:
        obj = _object(changed, quote)  # the rest is the old object's, which is decoded already
    else:
        obj = read_patched(changed, quote)
    if target.serving.strategy.keeps_nulls and not obj.get("kind"):
        raise undecodable(quote, f"Object 'Kind' is missing in '{quote()}'")
    try:
        unknown = target.serving.strategy.decode(obj, target.version)
    except Undecodable as error:
        why = error.restored if change.from_values else error.why
        raise undecodable(quote, why) from error
    except BadRequest as error:
        raise undecodable(quote, error.message) from error
    if unknown or change.problems:
        listed = [*change.problems, *(f'unknown field "{path}"' for path in unknown)]
        report_strictly(quote, listed, options)
    obj["metadata"] |= metadata
    obj |= members
    return obj


def read_patched(changed: Any, quote: Quote) -> Object:
    """Parse the result of a patch as an object."""
    try:
        text = orjson.dumps(changed)
    except TypeError as error:
        raise BadRequest("the patched object exceeded max depth") from error
    try:
        value = read_json(text)
    except MalformedObject as error:
        raise undecodable(quote, f"couldn't get version/kind; {error}") from error
    return _object(value, quote)


def _object(value: Any, quote: Quote) -> Object:
    try:
        return object_of(value, []).obj
    except MalformedObject as error:
        raise undecodable(quote, f"couldn't get version/kind; {error}") from error


def report_strictly(quote: Quote, problems: list[str], options: WriteOptions) -> None:
    """Report unknown and duplicate fields as the request's fieldValidation says."""
    if not problems or options.field_validation == "Ignore":
        return
    if options.field_validation == "Strict":
        raise undecodable(quote, "strict decoding error: " + ", ".join(problems))
    for text in problems:
        options.warn(text)


def undecodable(quote: Quote, text: str) -> Invalid:
    """Return the 422 of a patch result that is no object of this kind."""
    error = invalid("patch", quote(), text)
    return Invalid(f' "" is invalid: {error}', details={"causes": [error.cause()]})
