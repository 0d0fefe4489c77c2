"""Simulated create and update requests: computes a server's response without a server.

Called by the reviewer, the SDK's ``check`` and the console's convert view. An object goes through
``pipeline.py`` as on the server. With a status subresource a write takes two requests: the first
ignores the status, the second changes only the status, and both must be accepted. Server-written
metadata is ignored.
"""

from __future__ import annotations

from typing import NamedTuple

from instar.base.field_errors import FieldError
from instar.base.json_values import Object, copy_json, same_json
from instar.kube.schema.json_types import ABSENT
from instar.kube.schema.metadata.rules import MAX_GENERATED_BASE
from instar.kube.schema.metadata.types import MetaError
from instar.kube.schema.pipeline import SchemaPipeline, Warn

_SET_BY_SERVER = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)
_SOME_REVISION = "1"
_SOME_SUFFIX = "xxxxx"


class SimulatedResponse(NamedTuple):
    """Response that a server would send: the stored object, warnings, or errors."""

    obj: Object
    """The object as the server would store it: a pruned and defaulted copy."""
    unknown: list[str]
    """Paths of fields that were dropped."""
    errors: list[FieldError]
    warnings: list[str]
    undecodable: MetaError | None = None
    """The decoding error, if the request failed before validation."""

    @property
    def accepted(self) -> bool:
        return not self.errors and self.undecodable is None

    @property
    def refusals(self) -> list[str]:
        """Return the error texts, each once; empty when the request was accepted."""
        found = self.errors if self.undecodable is None else [self.undecodable]
        return list(dict.fromkeys(map(str, found)))


def create(pipeline: SchemaPipeline, obj: Object) -> SimulatedResponse:
    """Return the answer to a create, followed by a status update."""
    sent: Object = copy_json(obj)
    try:
        unknown = pipeline.decode(sent)
    except MetaError as error:
        return SimulatedResponse(sent, [], [], [], error)
    warnings: list[str] = []
    return SimulatedResponse(
        sent, unknown, _creation_errors(pipeline, sent, warnings.append), warnings
    )


def update(pipeline: SchemaPipeline, obj: Object, old: Object) -> SimulatedResponse:
    """Return the answer to an update of the stored ``old``; both are of this version.

    Unchanged invalid parts of ``old`` are accepted (ratcheting), as on a server.
    """
    stored: Object = copy_json(old)
    pipeline.from_storage(stored)
    sent: Object = copy_json(obj)
    try:
        unknown = pipeline.decode(sent)
    except MetaError as error:
        return SimulatedResponse(sent, [], [], [], error)
    warnings: list[str] = []
    return SimulatedResponse(
        sent, unknown, _update_errors(pipeline, sent, stored, warnings.append), warnings
    )


def as_new(obj: Object) -> Object:
    """Return the decoded object as a create sees it: without server-written metadata and with a
    name generated from ``generateName``."""
    made = {name: value for name, value in obj["metadata"].items() if name not in _SET_BY_SERVER}
    if not made.get("name") and made.get("generateName"):
        made["name"] = made["generateName"][:MAX_GENERATED_BASE] + _SOME_SUFFIX
    return {**obj, "metadata": made}


def _creation_errors(pipeline: SchemaPipeline, sent: Object, warn: Warn) -> list[FieldError]:
    created = as_new(sent)
    pipeline.leave_status(created)
    found = pipeline.check_create(created, warn)
    if found or not pipeline.has_status or "status" not in sent:
        return found
    pipeline.default(created)
    return _status_write(pipeline, sent, created, warn)


def _update_errors(
    pipeline: SchemaPipeline, sent: Object, old: Object, warn: Warn
) -> list[FieldError]:
    first = {**sent, "metadata": _update_metadata(sent["metadata"], old["metadata"])}
    pipeline.keep_status(first, old)
    found = pipeline.check_update(first, old, warn=warn)
    if found or not pipeline.has_status or _same_status(sent, old):
        return found
    return _status_write(pipeline, sent, first, warn)


def _same_status(new: Object, old: Object) -> bool:
    return same_json(new.get("status", ABSENT), old.get("status", ABSENT))


def _status_write(
    pipeline: SchemaPipeline, sent: Object, old: Object, warn: Warn
) -> list[FieldError]:
    new = {name: value for name, value in old.items() if name != "status"}
    if "status" in sent:
        new["status"] = sent["status"]
    return pipeline.check_update(new, old, status_only=True, warn=warn)


def _update_metadata(metadata: Object, old: Object) -> Object:
    """Return the metadata of an update by a client that has read the object."""
    old.setdefault("resourceVersion", _SOME_REVISION)
    given = {name: value for name, value in metadata.items() if name not in _SET_BY_SERVER}
    kept = {name: old[name] for name in ("namespace", *_SET_BY_SERVER) if name in old}
    return {**kept, **given}
