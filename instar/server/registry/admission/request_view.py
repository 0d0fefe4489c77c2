"""An operation as configurations see it: what rules and selectors look at, and what whoever is
asked is told of it. Webhooks and policies share it, with every conversion made on the way.
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
from instar.kube.admission.evaluation import TooLongHere
from instar.kube.admission.match_rules import MatchedRequest, RequestEndpoint
from instar.kube.admission.matching import Criteria
from instar.kube.api.names import GroupVersionKind, parse_group_version
from instar.kube.cel.library import authorizer as authz
from instar.server.registry.resources.admission import Operation, Verb
from instar.server.registry.resources.serving import Serving, VersionServing
from instar.server.registry.stored.backend import Backend
from instar.server.registry.stored.entry import UnreadableEntry
from instar.wire.storage.keys import collection_prefix

_ANSWER_SECONDS = 10.0
"""That an expression waits for an authorizer far away."""


class ObjectPair(NamedTuple):
    """The object and what it was before, at one version."""

    obj: Object | None
    old: Object | None


class Subjects:
    """Makes subjects; knows where namespaces are and who decides about permissions."""

    def __init__(self, backend: Backend, authorizer: Authorizer, *, strict: bool = True) -> None:
        """``strict``: a namespace must exist; else one that does not is as if nothing was said of
        it."""
        self._backend = backend
        self._namespaces = backend.collection(collection_prefix("", "namespaces"))
        self._strict = strict
        self.authorizer = authorizer

    def of(self, operation: Operation, *, validating: bool) -> Subject:
        """The same for everybody who asks in the same phase."""
        known = operation.notes.get(Subject)
        if not isinstance(known, Subject) or known.validating is not validating:
            known = operation.notes[Subject] = Subject(self, operation, validating=validating)
        return known

    async def namespace(self, name: str) -> Object | None:
        """The Namespace as stored; where namespaces need not exist, None for one that does not."""
        if name not in self._namespaces.entries:
            await self._backend.consistent()
        entry = self._namespaces.entries.get(name)
        if entry is None:
            if self._strict:
                raise errors.not_found("", "namespaces", name)
            return None
        try:
            return entry.decode()
        except UnreadableEntry:
            return None


class Subject:
    """One operation in one phase."""

    def __init__(self, subjects: Subjects, operation: Operation, *, validating: bool) -> None:
        self._subjects = subjects
        self.operation = operation
        self.validating = validating
        self.asked = _asked(operation, validating=validating)
        self._pairs: dict[str, ObjectPair] = {}

    async def means(self, criteria: Criteria, obj: Object | None = None) -> RequestEndpoint | None:
        """At which version a configuration wants to see the operation; None when it does not.
        ``obj`` is the object as it is by now, where that is not the operation's. Raises 404 for a
        namespace that a selector asks about and nobody knows."""
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
        """A Namespace that is written is judged by what it will be."""
        operation, asked = self.operation, self.asked
        written = operation.verb in (Verb.CREATE, Verb.UPDATE)
        if asked.is_namespace and written and not operation.subresource:
            return labels_of(operation.obj) or {}
        return labels_of(await self._subjects.namespace(asked.namespace)) or {}

    async def namespace_object(self) -> Object | None:
        """For expressions: of a namespaced object alone."""
        asked = self.asked
        if asked.is_namespace or not asked.namespace:
            return None
        return await self._subjects.namespace(asked.namespace)

    def request(self, endpoint: RequestEndpoint) -> Object:
        """The AdmissionRequest but for its objects."""
        operation = self.operation
        given = operation.options
        options = None if given is None else given.document(operation.verb)
        user = user_info(operation.asked.user)
        return request_document(self.asked, endpoint, user, options, dry_run=operation.dry_run)

    async def at(self, endpoint: RequestEndpoint) -> ObjectPair:
        """Both objects at a version, each converted once. They are not to be changed."""
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
        """Remembered beyond the phase: the old object does not change."""
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
        """From one version of the resource to another; not pruned, not defaulted."""
        target = self.operation.target
        if source.api_version == wanted.api_version or self.operation.kind is not None:
            return obj
        versions = target.serving.versions
        return await target.codec.shown(obj, versions[source.version], versions[wanted.version])

    def values(self, endpoint: RequestEndpoint, pair: ObjectPair) -> dict[str, Any]:
        """What expressions see, but for params, variables and the namespace."""
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
        """Answers expressions. Where somebody far away must be asked, the expression has to wait:
        that it can in a thread alone."""
        loop, authorizer = asyncio.get_running_loop(), self._subjects.authorizer

        def decide(question: authz.CelAuthzQuestion) -> authz.CelAuthzDecision:
            asked = self._attributes(question)
            if _on_loop():
                decision = authorizer.decide(asked)
                if decision is None:
                    raise TooLongHere
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
    """None where there is no object, or it has no metadata."""
    metadata = None if obj is None else obj.get("metadata")
    if not isinstance(metadata, dict):
        return None
    labels = metadata.get("labels")
    return labels if isinstance(labels, dict) else {}


def refused_name(operation: Operation) -> str:
    """What a refusal calls the object: the request's name, its own, or what that begins with."""
    metadata = (operation.obj or {}).get("metadata") or {}
    return operation.name or metadata.get("name") or metadata.get("generateName") or "Unknown"


def _asked(operation: Operation, *, validating: bool) -> MatchedRequest:
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
"""The same for all requests as long as a resource is served as it is."""


def _endpoints(serving: Serving, version: VersionServing, operation: Operation) -> _Endpoints:
    """The request's own, and the same at every version that has it."""
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
