"""Finds the clients of a CRD: from usage counts, audit events and managedFields. Pure.

``run.py`` calls it. A client is a user agent with its user, or a field manager. Requests that an
audit log recorded can be repeated literally.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.api.user_agents import is_ours
from instar.tools.snapshots.captured_cluster import RecordedUse

READING = frozenset({"get", "list", "watch"})
"""Verbs that read objects."""
CREATING = frozenset({"create"})
"""Verbs that create objects."""
WRITING = frozenset({"update", "patch", "apply"})
"""Verbs that change existing objects."""
MOST_RECORDED = 50
"""Most distinct recorded requests of one client at one CRD that are repeated."""
_MOST_CLIENTS = 2_000
_METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
_OF_A_WATCH = ("watch", "allowWatchBookmarks", "sendInitialEvents", "resourceVersionMatch")
"""A watch does not end, so the list it begins with is repeated instead."""
_FINAL = frozenset({"ResponseComplete", "ResponseStarted", "Panic"})
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class ClientCall(NamedTuple):
    """How often a client used a verb at a version."""

    version: str
    verb: str
    number: int


class Recorded(NamedTuple):
    """One request from an audit log."""

    verb: str
    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    version: str
    key: str
    """Key of its object; empty for collections and creations."""
    body: Any = None
    content_type: str = "application/json"
    basis: str = ""


@dataclass
class ObservedClient:
    """A client seen in usage counts, audit events or managedFields, with its calls."""

    name: str
    uses: list[ClientCall] = field(default_factory=list)
    recorded: list[Recorded] = field(default_factory=list)
    left_out: int = 0
    """Number of recorded requests that are not repeated, as duplicates or beyond the limit."""

    @property
    def idle(self) -> bool:
        return not self.uses and not self.recorded


Resource = tuple[str, str]
"""Group and plural."""


def clients_of(
    wanted: Collection[Resource], usage: Iterable[RecordedUse], events: Iterable[Object]
) -> dict[Resource, dict[str, ObservedClient]]:
    """Collect clients by resource and name in one pass, without instar's own tools."""
    found: dict[Resource, dict[str, ObservedClient]] = {resource: {} for resource in wanted}
    for use in usage:
        mine = found.get((use.group, use.resource))
        if mine is not None and not is_ours(use.agent):
            client = _client(mine, short_name(use.agent, use.user))
            client.uses.append(ClientCall(use.version, use.verb, use.number))
    for event in events:
        about = event.get("objectRef")
        if not isinstance(about, dict) or event.get("stage", "ResponseComplete") not in _FINAL:
            continue
        mine = found.get((str(about.get("apiGroup") or ""), str(about.get("resource") or "")))
        agent = str(event.get("userAgent") or "")
        if mine is not None and not is_ours(agent):
            _note(_client(mine, short_name(agent, _user(event))), event, about)
    return found


def short_name(agent: str, user: str) -> str:
    """Return a short name: the program of a user agent, or the last part of a service account."""
    program = agent.split(" ", 1)[0][:60] or "unnamed"
    account = user.removeprefix("system:serviceaccount:")
    return f"{program} ({account})" if account else program


def manager_name(manager: str, operation: str, subresource: str) -> str:
    where = f", {subresource}" if subresource else ""
    return f"manager {manager or 'unknown'} ({operation}{where})"


def _client(found: dict[str, ObservedClient], name: str) -> ObservedClient:
    if name not in found and len(found) >= _MOST_CLIENTS:
        name = "(others)"
    return found.setdefault(name, ObservedClient(name))


def _user(event: Object) -> str:
    user = event.get("impersonatedUser") or event.get("user")
    return str(user.get("username") or "") if isinstance(user, dict) else ""


def _note(client: ObservedClient, event: Object, about: Mapping[str, Any]) -> None:
    version, verb = str(about.get("apiVersion") or ""), str(event.get("verb") or "")
    if not any((use.version, use.verb) == (version, verb) for use in client.uses):
        # counted even if it cannot be repeated because the body or the object is missing
        client.uses.append(ClientCall(version, verb, 1))
    request = repeatable_request(event, about)
    if request is None:
        return
    if request in client.recorded or len(client.recorded) >= MOST_RECORDED:
        client.left_out += 1
    else:
        client.recorded.append(request)


def repeatable_request(event: Object, about: Mapping[str, Any]) -> Recorded | None:
    """Return the request to repeat; None if the event does not contain enough."""
    verb = str(event.get("verb") or "")
    method = _METHODS.get(verb)
    uri = str(event.get("requestURI") or "")
    if method is None or not uri.startswith("/"):
        return None
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    query = tuple(
        (name, value)
        for name, values in parse_qs(parts.query, keep_blank_values=True).items()
        for value in values[:1]
        if name not in ("dryRun", "continue", "resourceVersion", "timeout", "timeoutSeconds")
        and not (verb == "watch" and name in _OF_A_WATCH)
    )
    body = event.get("requestObject")
    if verb in ("create", "update", "patch") and body is None:
        # the audit policy recorded no bodies
        return None
    name = str(about.get("name") or "") if verb != "create" else ""
    namespace = str(about.get("namespace") or "")
    key = f"{namespace}/{name}" if namespace and name else name
    content_type, basis = _kind_of_patch(body, dict(query)) if verb == "patch" else ("", "")
    if verb == "watch":
        basis = "a watch is tried as the list it begins with"
    return Recorded(
        verb,
        method,
        unquote(parts.path),
        query,
        str(about.get("apiVersion") or ""),
        key,
        body if verb in ("create", "update", "patch") else None,
        content_type or "application/json",
        basis,
    )


def _kind_of_patch(body: Any, query: Mapping[str, str]) -> tuple[str, str]:
    """Return the patch type, which audit events do not contain."""
    if isinstance(body, list):
        return JSON_PATCH, ""
    guess = "audit events do not name the kind of a patch; it is taken to be "
    whole = isinstance(body, dict) and "apiVersion" in body and "kind" in body
    if whole and query.get("fieldManager"):
        return APPLY_PATCH, guess + "an apply where it names its kind, else a merge"
    return MERGE_PATCH, guess + "an apply where it names its kind, else a merge"
