"""An admission request as webhooks and policies see it: attributes, objects and namespace.

``RequestViews.of`` makes one ``RequestView`` per operation and phase, which webhooks and policies
share, so that each object is converted to a version once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from instar.base import errors
from instar.base.json_values import Object
from instar.kube.access.attributes import (
    AUTHENTICATED,
    Attributes,
    User,
    account_groups,
    account_name,
)
from instar.kube.access.authorizers import Authorizer
from instar.kube.admission.admission_request import request_document, user_info
from instar.kube.admission.evaluation import TooLongForLoop
from instar.kube.admission.match_rules import MatchedRequest, RequestEndpoint
from instar.kube.admission.matching import Criteria
from instar.kube.api.names import GroupVersionKind, parse_group_version
from instar.kube.cel.library import authorizer as authz
from instar.server.registry.admission.home_views import HomeViews
from instar.server.registry.resources.admission import Operation, Verb
from instar.server.registry.resources.serving import Serving, VersionServing
from instar.server.registry.stored.entry import UnreadableEntry
from instar.wire.storage.keys import collection_prefix

_ANSWER_SECONDS = 10.0
"""Seconds that an expression waits for a remote authorizer."""


class ObjectPair(NamedTuple):
    """The new and the old object, at one version."""

    obj: Object | None
    old: Object | None


class RequestViews:
    """Creates request views; holds the namespaces and the authorizer."""

    def __init__(self, home: HomeViews, authorizer: Authorizer, *, strict: bool = True) -> None:
        """With ``strict`` a namespace must exist; otherwise a missing one has no labels."""
        self._refresh = home.refresh_namespace
        self._namespaces = home.backend.collection(collection_prefix("", "namespaces"))
        self._strict = strict
        self.authorizer = authorizer

    def of(self, operation: Operation, *, validating: bool) -> RequestView:
        """Return the operation's subject, shared by all callers of the same phase."""
        known = operation.notes.get(RequestView)
        if not isinstance(known, RequestView) or known.validating is not validating:
            known = operation.notes[RequestView] = RequestView(
                self, operation, validating=validating
            )
        return known

    async def namespace(self, name: str) -> Object | None:
        """Return the stored Namespace; None for a missing one where namespaces need not exist."""
        if name not in self._namespaces.entries:
            await self._refresh(name)
        entry = self._namespaces.entries.get(name)
        if entry is None:
            if self._strict:
                raise errors.not_found("", "namespaces", name)
            return None
        try:
            return entry.decode()
        except UnreadableEntry:
            return None


class RequestView:
    """One operation in one phase (mutating or validating)."""

    def __init__(self, subjects: RequestViews, operation: Operation, *, validating: bool) -> None:
        self._subjects = subjects
        self.operation = operation
        self.validating = validating
        self.asked = _matched_request(operation, validating=validating)
        self._pairs: dict[str, ObjectPair] = {}

    async def means(self, criteria: Criteria, obj: Object | None = None) -> RequestEndpoint | None:
        """Return the version at which a configuration matches the operation; None if it does not
        match. ``obj`` is the current object where it differs from the operation's. Raises 404 for a
        missing namespace that a selector needs."""
        endpoint = criteria.endpoint(self.asked)
        if endpoint is None:
            return None
        operation = self.operation
        if not criteria.takes_object(labels_of(obj or operation.obj), labels_of(operation.old)):
            return None
        if criteria.namespaces is not None and self.asked.namespace:
            labels = await self.namespace_labels()
            if not criteria.namespaces.matches(labels):
                return None
        return endpoint

    async def namespace_labels(self) -> Mapping[str, str]:
        """Return the namespace's labels; for a write of a Namespace, those of the new object."""
        operation, asked = self.operation, self.asked
        written = operation.verb in (Verb.CREATE, Verb.UPDATE)
        if asked.is_namespace and written and not operation.subresource:
            return labels_of(operation.obj) or {}
        return labels_of(await self._subjects.namespace(asked.namespace)) or {}

    async def namespace_object(self) -> Object | None:
        """Return the Namespace for expressions; None for cluster-scoped objects."""
        asked = self.asked
        if asked.is_namespace or not asked.namespace:
            return None
        return await self._subjects.namespace(asked.namespace)

    def request(self, endpoint: RequestEndpoint) -> Object:
        """Return the AdmissionRequest without its objects."""
        operation = self.operation
        given = operation.options
        options = None if given is None else given.document(operation.verb)
        user = user_info(operation.asked.user)
        return request_document(self.asked, endpoint, user, options, dry_run=operation.dry_run)

    async def at(self, endpoint: RequestEndpoint) -> ObjectPair:
        """Return both objects at a version, each converted once. Callers must not change them."""
        known = self._pairs.get(endpoint.api_version)
        if known is None:
            obj = self.operation.obj
            shown = (
                None if obj is None else await self.converted(obj, self.asked.endpoint, endpoint)
            )
            known = self._pairs[endpoint.api_version] = ObjectPair(
                shown, await self.old_at(endpoint)
            )
        return known

    async def old_at(self, endpoint: RequestEndpoint) -> Object | None:
        """Return the old object at a version; cached across phases, because it does not change."""
        old, key = self.operation.old, ("old", endpoint.api_version)
        if old is None:
            return None
        notes = self.operation.notes
        if key not in notes:
            notes[key] = await self.converted(old, self.asked.endpoint, endpoint)
        shown: Object = notes[key]
        return shown

    async def converted(
        self, obj: Object, source: RequestEndpoint, wanted: RequestEndpoint
    ) -> Object:
        """Convert between versions of the resource, without pruning or defaulting."""
        target = self.operation.target
        if source.api_version == wanted.api_version or self.operation.kind is not None:
            return obj
        version_at = target.serving.version_at
        return await target.codec.converted_for_admission(
            obj, version_at(source.api_version), version_at(wanted.api_version)
        )

    def values(self, endpoint: RequestEndpoint, pair: ObjectPair) -> dict[str, Any]:
        """Return the variables of expressions, except params, variables and the namespace."""
        decide, asked = self._decider(), self.asked
        question = authz.CelAuthzQuestion(
            "",
            group=asked.endpoint.group,
            resource=asked.endpoint.resource,
            subresource=asked.subresource,
            namespace=asked.namespace,
            name=asked.name,
        )
        return {
            "object": pair.obj,
            "oldObject": pair.old,
            "request": self.request(endpoint),
            "authorizer": authz.CelAuthorizer(decide),
            "authorizer.requestResource": authz.ResourceCheck(decide, question),
        }

    def _decider(self) -> Callable[[authz.CelAuthzQuestion], authz.CelAuthzDecision]:
        """Return the function that answers ``authorizer`` checks of expressions. A remote
        authorizer makes the expression wait, which is possible only in a thread."""
        loop, authorizer = asyncio.get_running_loop(), self._subjects.authorizer

        def decide(question: authz.CelAuthzQuestion) -> authz.CelAuthzDecision:
            asked = self._attributes(question)
            if _on_loop():
                decision = authorizer.decide(asked)
                if decision is None:
                    raise TooLongForLoop
            else:
                waiting = asyncio.run_coroutine_threadsafe(authorizer.ask(asked), loop)
                try:
                    decision = waiting.result(_ANSWER_SECONDS)
                except TimeoutError:
                    waiting.cancel()
                    return authz.CelAuthzDecision(
                        False, error="the authorizer did not answer in time"
                    )
            return authz.CelAuthzDecision(decision.allowed, decision.reason, decision.error)

        return decide

    def _attributes(self, question: authz.CelAuthzQuestion) -> Attributes:
        return Attributes(
            self._user(question),
            question.verb,
            group=question.group,
            resource=question.resource,
            subresource=question.subresource,
            namespace=question.namespace,
            name=question.name,
            path=question.path,
        )

    def _user(self, question: authz.CelAuthzQuestion) -> User:
        if question.service_account is None:
            return self.operation.asked.user
        namespace, name = question.service_account
        groups = (*account_groups(namespace), AUTHENTICATED)
        return User(account_name(namespace, name), groups)


def _on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def labels_of(obj: Object | None) -> Mapping[str, str] | None:
    """Return the labels; None without an object or metadata."""
    metadata = None if obj is None else obj.get("metadata")
    if not isinstance(metadata, dict):
        return None
    labels = metadata.get("labels")
    return labels if isinstance(labels, dict) else {}


def refused_name(operation: Operation) -> str:
    """Return the object's name for error messages: the request's, its own, or generateName."""
    metadata = (operation.obj or {}).get("metadata") or {}
    return operation.name or metadata.get("name") or metadata.get("generateName") or "Unknown"


def _matched_request(operation: Operation, *, validating: bool) -> MatchedRequest:
    serving, target = operation.target.serving, operation.target
    name, namespace = operation.name, target.namespace
    if validating and not name and operation.obj is not None:
        name = (operation.obj.get("metadata") or {}).get("name", "")
    if not serving.group and serving.plural == "namespaces":
        namespace = target.name or name
    own, equivalents = _endpoints(serving, target.version, operation)
    return MatchedRequest(
        operation=operation.verb.value,
        endpoint=own,
        subresource=operation.subresource,
        namespace=namespace,
        name=name,
        equivalents=equivalents,
    )


_Endpoints = tuple[RequestEndpoint, tuple[RequestEndpoint, ...]]
_KNOWN: WeakKeyDictionary[Serving, dict[tuple[Any, ...], _Endpoints]] = WeakKeyDictionary()
"""Endpoints per serving, equal for all requests until the resource changes."""


def _endpoints(serving: Serving, version: VersionServing, operation: Operation) -> _Endpoints:
    """Return the request's own endpoint, and the equivalent ones at every version that has it."""
    held = _KNOWN.get(serving)
    if held is None:
        held = _KNOWN[serving] = {}
    key = (version.name, operation.subresource, operation.kind)
    known = held.get(key)
    if known is None:
        equivalents = tuple(
            _endpoint(serving, each, operation.kind)
            for each in serving.versions.values()
            if _has(each, operation.subresource)
        )
        known = held[key] = _endpoint(serving, version, operation.kind), equivalents
    return known


def _endpoint(
    serving: Serving, version: VersionServing, fixed: GroupVersionKind | None
) -> RequestEndpoint:
    group, name = parse_group_version(version.api_version)
    kind = GroupVersionKind(group, name, version.kind) if fixed is None else fixed
    return RequestEndpoint(group, name, serving.plural, kind)


def _has(version: VersionServing, subresource: str) -> bool:
    if not subresource:
        return True
    return any(found.name == subresource for found in version.definition.subresources())
