"""Query and path parameters of each operation, common to v2 and v3.

Called by ``documents.py``, ``v2.py`` and ``v3.py``.
"""

from __future__ import annotations

from typing import NamedTuple


class Parameter(NamedTuple):
    """One query or path parameter."""

    name: str
    type: str
    description: str
    location: str = "query"


_RESOURCE_VERSION = Parameter(
    "resourceVersion", "string", "The state to read, or to start watching from."
)
_DRY_RUN = Parameter("dryRun", "string", "`All`: do everything but store the result.")
_WRITE = (
    _DRY_RUN,
    Parameter("fieldManager", "string", "The name under which changed fields are recorded."),
    Parameter("fieldValidation", "string", "Unknown fields: Ignore, Warn or Strict."),
)
_LIST = (
    Parameter("allowWatchBookmarks", "boolean", "Send bookmark events while watching."),
    Parameter("continue", "string", "Where the page before ended."),
    Parameter("fieldSelector", "string", "Only objects with these field values."),
    Parameter("labelSelector", "string", "Only objects with these labels."),
    Parameter("limit", "integer", "The most objects to return in one page."),
    _RESOURCE_VERSION,
    Parameter("resourceVersionMatch", "string", "How resourceVersion is meant."),
    Parameter("sendInitialEvents", "boolean", "Begin a watch with the objects that exist."),
    Parameter("shardSelector", "string", "Only the part of the objects this expression picks."),
    Parameter("timeoutSeconds", "integer", "When to end the request."),
    Parameter("watch", "boolean", "Send changes as they happen instead of a list."),
)
_DELETE = (
    _DRY_RUN,
    Parameter("gracePeriodSeconds", "integer", "Seconds until the object is removed."),
    Parameter(
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
        "Delete even what cannot be read.",
    ),
    Parameter("orphanDependents", "boolean", "Deprecated; see propagationPolicy."),
    Parameter("propagationPolicy", "string", "Orphan, Background or Foreground."),
)

BY_ACTION: dict[str, tuple[Parameter, ...]] = {
    "get": (_RESOURCE_VERSION,),
    "list": _LIST,
    "deletecollection": _LIST,
    "post": _WRITE,
    "put": _WRITE,
    "patch": (
        *_WRITE,
        Parameter("force", "boolean", "Take fields over from other managers when applying."),
    ),
    "delete": _DELETE,
    "connect": (),
}


def of_path(path: str, kind: str) -> list[Parameter]:
    """Return the parameters that all methods of one path share."""
    found = []
    if "{name}" in path:
        found.append(Parameter("name", "string", f"name of the {kind}", "path"))
    if "{namespace}" in path:
        found.append(Parameter("namespace", "string", "the namespace of the object", "path"))
    if "{path}" in path:
        found.append(Parameter("path", "string", "the part of the URL that is passed on", "path"))
    found.append(Parameter("pretty", "string", "If 'true', the answer is indented."))
    return found
