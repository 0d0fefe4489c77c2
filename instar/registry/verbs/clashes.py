"""What a writer is told who was too late, or wants a name that is taken."""

from __future__ import annotations

from instar import errors
from instar.registry.resources.resource import Target

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def modified(target: Target) -> errors.Conflict:
    return errors.conflict(target.serving.group, target.serving.plural, target.name, MODIFIED)


def exists(target: Target, generated: bool) -> errors.AlreadyExists:
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
