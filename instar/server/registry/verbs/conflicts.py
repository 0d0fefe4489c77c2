"""Optimistic concurrency checks of writes: resourceVersion, uid, and names that are taken.

``write.py`` and ``update_attempt.py`` call it. The error texts are upstream's.
"""

from __future__ import annotations

from instar.base import errors
from instar.base.field_errors import invalid
from instar.base.json_values import Object
from instar.server.registry.resources.resource import Target
from instar.server.registry.stored.entry import CacheEntry
from instar.server.registry.verbs.metadata import another_uid, keep_uid, parse_revision
from instar.server.registry.verbs.write_request import UpdateRules

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def modified_error(target: Target) -> errors.Conflict:
    """Return the 409 of a write that is based on an outdated object."""
    return errors.conflict(target.serving.group, target.serving.plural, target.name, MODIFIED)


def exists(target: Target, generated: bool) -> errors.AlreadyExists:
    """Return the 409 of a create under a name that is taken."""
    entry = target.entry()
    serving = target.serving
    if generated:
        error = errors.already_exists(serving.group, serving.plural, target.name)
        text = "the server was not able to generate a unique name for the object"
        return errors.AlreadyExists(
            f"{error.message}, {text}", details=error.details, retry_after=1
        )
    terminating = entry is not None and "deletionTimestamp" in entry.decode().get("metadata", {})
    return errors.already_exists(
        serving.group, serving.plural, target.name, terminating=terminating
    )


def check_revision(target: Target, new: Object, entry: CacheEntry, rules: UpdateRules) -> None:
    """Refuse an update with another resourceVersion than the stored one, or without one where the
    kind requires it."""
    text = new["metadata"].get("resourceVersion") or ""
    if text == str(entry.revision):
        return
    if text in ("", "0"):
        if rules.unconditional:
            new["metadata"]["resourceVersion"] = str(entry.revision)
            return
        raise errors.invalid(
            target.serving.group,
            target.serving.plural,
            target.name,
            [invalid("metadata.resourceVersion", 0, "must be specified for an update")],
        )
    try:
        revision = parse_revision(text)
    except ValueError as error:
        raise errors.Unclassified(str(error)) from error
    if revision != entry.revision:
        raise modified_error(target)


def check_uid(target: Target, new: Object, old: Object, rules: UpdateRules) -> None:
    """Take over the stored uid; refuse another one if it is a precondition."""
    wanted, actual = new["metadata"].get("uid") or "", old["metadata"].get("uid", "")
    if not wanted:
        keep_uid(new["metadata"], old["metadata"])
    elif wanted != actual and rules.uid_is_precondition:
        raise another_uid(target, wanted, actual)
