"""The application: takes each HTTP request through authentication, authorization and its handler.

``http/http1.py`` calls it for requests from the port, ``lifecycle/embedded.py`` for calls in this
process. Verbs on objects are in ``rest/verbs.py``, other paths in ``endpoints``. Every error
becomes a response here.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from instar.base import errors
from instar.base.errors import ApiError
from instar.kube.access.attributes import Attributes, User
from instar.kube.access.authorizers import grant
from instar.kube.api.adoption import SERVED_BY, SERVED_BY_INSTAR
from instar.server.access.account_tokens import IssuerDocuments
from instar.server.access.authentication import Authenticator
from instar.server.access.front_proxy import Proxy
from instar.server.access.impersonation import Impersonation, is_asked_for
from instar.server.access.reviews import Reviews
from instar.server.endpoints import backup, history
from instar.server.endpoints.adoption import AdoptionEndpoint
from instar.server.endpoints.documents import Documents
from instar.server.endpoints.health import Health
from instar.server.endpoints.history import past_path
from instar.server.endpoints.insight import Insight
from instar.server.endpoints.metrics import METRICS_PATHS, Metrics
from instar.server.endpoints.objects import ObjectEndpoints
from instar.server.flow_control.configuration import Flow
from instar.server.flow_control.debug_dumps import DebugDumps
from instar.server.flow_control.flow_control import FlowControl
from instar.server.flow_control.seat_queues import FlowRejection
from instar.server.http.compress import compress
from instar.server.http.messages import Request, Response
from instar.server.identity.issuer import Issuer
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Target
from instar.server.rest import verbs
from instar.server.rest.audit_ids import audit_id_of, new_audit_id
from instar.server.rest.conversion_timing import count_conversion_wait, with_requested_cache
from instar.server.rest.deadlines import check_timeout, limit, too_late
from instar.server.rest.error_responses import (
    page_not_found,
    problem,
    render_error,
    too_many_requests,
    unexpected,
)
from instar.server.rest.negotiate import not_acceptable
from instar.server.rest.pods.kubelet_requests import KubeletConnections
from instar.server.rest.read_only import refusal
from instar.server.rest.request_attributes import ResourcePath
from instar.server.rest.responses import typed_response
from instar.server.rest.routing import KnownPath, Routes
from instar.server.rest.scaling import do_scale
from instar.server.rest.subresource_call import SubresourceCall
from instar.server.rest.subresources import HANDLERS
from instar.server.rest.unserved_paths import (
    is_over_namespaces,
    not_allowed,
    refused_method,
    unserved,
    verb_not_allowed,
)
from instar.server.rest.warnings import warning_headers
from instar.wire.conversion.instrumented import ConversionMetrics

if TYPE_CHECKING:
    from instar.server.aggregation.aggregator import Aggregator
    from instar.server.audit.auditor import Auditor

log = logging.getLogger("instar.access")
_DIGITS = 9
"""Digits of a ``limit`` that counts as one; a wrong one is refused by the verb."""
_READS = ("get", "list", "watch", "head", "options")
_SERVED_BY = (SERVED_BY.lower().encode(), SERVED_BY_INSTAR.encode())
EVERY_ANSWER = ((b"cache-control", b"no-cache, private"),)


class App:
    """Handles one request per call, and holds no request state."""

    def __init__(
        self,
        *,
        context: Context,
        catalog: Catalog,
        authenticator: Authenticator,
        issuer: Issuer,
        health: Health,
        metrics: Metrics,
        conversion_metrics: ConversionMetrics,
        insight: Insight,
        kubelets: KubeletConnections,
        request_timeout: float = 60.0,
        auditor: Auditor | None = None,
        flow: FlowControl | None = None,
        read_only: bool = False,
        aggregator: Aggregator | None = None,
        aggregated: bool = False,
        cbor: bool = False,
    ) -> None:
        """Without ``flow`` any number of requests may be in flight. With ``aggregated`` a proxy is
        the aggregation layer of a main cluster, which adds headers of its own."""
        self._aggregator, self._aggregated, self._cbor = aggregator, aggregated, cbor
        self._read_only = read_only
        self._auditor = auditor
        self._flow = flow
        self._context = context
        self._catalog = catalog
        self.authenticator = authenticator
        self._health = health
        self._metrics = metrics
        self._conversion_metrics = conversion_metrics
        self._insight = insight
        self._subresource_call = partial(SubresourceCall, context, catalog, issuer, kubelets)
        self._request_timeout = request_timeout
        self._documents = Documents(catalog, aggregator)
        self._adoption = AdoptionEndpoint(context.backend, catalog) if aggregated else None
        self._object_pages = ObjectEndpoints(catalog)
        self._reviews = Reviews(authenticator.tokens, context.authorizer)
        self._impersonation = Impersonation(context.authorizer)
        self.issuer_documents = IssuerDocuments(issuer)
        self._routes = Routes(catalog, aggregator)
        self._dumps = None if flow is None else DebugDumps(flow)
        self.reads = False
        """Whether CRDs and RBAC objects have been read; until then only health is answered."""
        self._ready = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Whether all of the storage has been read, so that writes are served."""
        return self._ready.is_set()

    def open(self) -> None:
        self.reads = True
        self._ready.set()

    async def __call__(self, request: Request, peer: User | None) -> Response:
        began = request.began = perf_counter()
        request.cbor = self._cbor
        failure: BaseException | None = None
        try:
            try:
                response = await self._answer(request, peer)
            except ApiError as error:
                failure = error
                response = await render_error(error, request)
        except asyncio.CancelledError:
            if not request.expired:
                if self._auditor is not None:
                    self._auditor.client_disconnected(request)
                raise
            failure = too_late(request)
            response = problem(failure, request)
        except Exception as error:
            failure = error
            response = unexpected(error, request)
        if self._auditor is not None:
            self._auditor.answered(request, response, failure, audit_id_of(request))
        if b"accept-encoding" in request.headers:
            await compress(request, response)
        if request.warnings:
            response.headers += warning_headers(request.warnings)
        if self._aggregated and isinstance(peer, Proxy):
            response.bare = True
            response.headers.append(_SERVED_BY)
        else:
            response.headers += request.flow_headers or ()
            response.headers.append(
                (b"audit-id", request.headers.get(b"audit-id") or new_audit_id())
            )
        self._metrics.served(request.method, response.status, perf_counter() - began)
        if log.isEnabledFor(logging.INFO):
            _log_access(request, response, perf_counter() - began, failure)
        return response

    async def _answer(self, request: Request, peer: User | None) -> Response:
        if request.query:
            check_timeout(request)
        past = past_path(request.path)
        route = self._routes.of(past or request.path)
        if route.path is None and not self.ready:
            # RBAC objects are not read yet, and health is public.
            public = self._health.respond(request)
            if public is not None:
                return public
        user = self.authenticator.recognise(request, peer)
        if user is None:
            user = await self.authenticator.identify(request, peer)
        if self._auditor is not None:
            await self._auditor.begin(request, route.path, user, audit_id_of(request))
        request.asked = self._attributes(route, request, user)
        if not self._ready.is_set():
            await self._wait_until_read(request)
        if is_asked_for(request):
            request.requester = user
            user, request.constraint = await self._impersonation.user_of(request, request.asked)
            request.asked = request.asked._replace(user=user)
        if self._flow is None:
            return await self._authorize_and_serve(request, route)
        flow = self._flow.flow_of(request.asked)
        request.flow_headers = flow.kind.headers
        if flow.kind.exempt:
            self._flow.pass_exempt(flow)
        elif not request.asked.long_running or request.asked.verb == "watch":
            return await self._serve_seated(self._flow, flow, request, route)
        return await self._authorize_and_serve(request, route)

    async def _wait_until_read(self, request: Request) -> None:
        """Until the whole store is read: serve reads of loaded collections, delay other
        requests."""
        if not self.reads:
            raise errors.ServiceUnavailable(
                "the server is starting and waits for its storage", retry_after=1
            )
        asked = request.asked
        if asked.verb not in _READS or self._context.backend.lacks(asked.group, asked.resource):
            limit(request, asked.verb, self._request_timeout)
            await self._ready.wait()
        elif self._catalog.loading and not self._catalog.is_independent_of_crds(
            asked.group, asked.resource
        ):
            limit(request, asked.verb, self._request_timeout)
            await self._catalog.loaded()

    def _attributes(self, route: KnownPath, request: Request, user: User) -> Attributes:
        about = self._object_pages.asked(request, user) if route.path is None else None
        return about or self._routes.asked(route, request, user)

    async def _serve_seated(
        self, control: FlowControl, flow: Flow, request: Request, route: KnownPath
    ) -> Response:
        """Serve a request when it has its seats. A watch gives them back once it has begun."""
        limit = request.one("limit") if request.query else ""
        few = int(limit) if limit.isdecimal() and len(limit) <= _DIGITS else 0
        seat = control.enter(flow, request.asked, few)
        if isinstance(seat, FlowRejection):
            return too_many_requests(control.retry_after(flow))
        try:
            if seat.granted is not None and await seat.granted is not None:
                return too_many_requests(control.retry_after(flow))
            return await self._authorize_and_serve(request, route)
        finally:
            control.leave(seat)

    async def _authorize_and_serve(self, request: Request, route: KnownPath) -> Response:
        note = None if self._auditor is None else partial(self._auditor.decided, request)
        authorizer, asked = self._context.authorizer, request.asked
        grant(authorizer, asked, authorizer.decide(asked) or await authorizer.ask(asked), note)
        if route.remote is not None and self._aggregator is not None:
            return await self._aggregator.serve(request, route.remote, audit_id_of(request))
        if request.incoming is not None and b"upgrade" not in request.headers:
            request.body = await request.incoming.gather()
        told = None if self._adoption is None else await self._adoption.respond(request)
        if told is not None:
            return told
        if route.path is not None:
            return await self._serve_resource(request, route, route.path)
        health = self._health.respond(request)
        if health is not None:
            return health
        if request.path in METRICS_PATHS:
            return await self._metrics.respond(request.path)
        dump = None if self._dumps is None else self._dumps.respond(request)
        if dump is not None:
            return dump
        told = await self._insight.respond(request) or self.issuer_documents.respond(request)
        told = told or await backup.respond(self._context.backend, request)
        if told is not None:
            return told
        return await self._object_pages.respond(request) or await self._serve_document(request)

    async def _serve_document(self, request: Request) -> Response:
        limit(request, "get", self._request_timeout)
        parts = [part for part in request.path.split("/") if part]
        if self._context.backend.behind():
            await self._context.backend.consistent()
        found = await self._documents.respond(request, parts, self._health.paths)
        if found is None:
            return self._nothing_at(parts)
        refused = refused_method(request.method, parts, self._catalog.is_builtin_group)
        if refused is not None:
            raise refused
        return found

    def _nothing_at(self, parts: list[str]) -> Response:
        refused = unserved(parts, self._catalog.is_builtin_group)
        if refused is not None:
            raise refused
        return page_not_found()

    async def _serve_resource(
        self, request: Request, route: KnownPath, path: ResourcePath
    ) -> Response:
        verb = request.asked.verb
        limit(request, verb, self._request_timeout)
        if self._context.backend.behind():
            await self._context.backend.consistent()
        target = self._routes.target(route, verb)
        if target is None:
            target = await self._target_by_now(route, verb)
        if target is None:
            known = self._catalog.find(path.group, path.plural)
            if known is not None:
                self._insight.note(request.asked, known.serving, request.header(b"user-agent"))
                if known.serving.builtin and is_over_namespaces(path, known.serving):
                    raise not_allowed()
            return self._nothing_at(request.path.strip("/").split("/"))
        refused = refusal(request, target) if self._read_only else None
        if refused is not None:
            raise refused
        self._insight.note(request.asked, target.serving, request.header(b"user-agent"))
        if target.version.deprecation is not None:
            request.warn(target.version.deprecation)
            request.annotate("k8s.io/deprecated", "true")
        target = with_requested_cache(request, target)
        if past_path(request.path):
            namespaces = self._catalog.builtin("", "namespaces")
            return await history.respond(self._context, request, target, path, namespaces)
        if not target.serving.converts_remotely:
            return await self._serve_verb(request, path, target)
        with count_conversion_wait(self._conversion_metrics, target):
            return await self._serve_verb(request, path, target)

    async def _target_by_now(self, route: KnownPath, verb: str) -> Target | None:
        """Find the target again, because another replica may just have written the CRD."""
        await self._context.backend.consistent()
        return self._routes.target(route, verb)

    async def _serve_verb(self, request: Request, path: ResourcePath, target: Target) -> Response:
        serving, verb = target.serving, request.asked.verb
        if path.subresource:
            return await self._serve_subresource(request, path, target)
        handler = verbs.VERBS.get(verb)
        if handler is None:
            raise verb_not_allowed(serving, verb)
        if not serving.builtin:
            return await handler(self._context, request, target)
        offered = serving.verbs is None or verb in serving.verbs
        if not offered or (verb == "create" and path.name):
            raise verb_not_allowed(serving, verb)
        own = HANDLERS.get((serving.group, serving.plural, ""))
        if own is not None:
            return await own(self._subresource_call(request, target))
        if serving.verbs == ("create",):
            return await self._serve_review(request, target)
        return await handler(self._context, request, target)

    async def _serve_subresource(
        self, request: Request, path: ResourcePath, target: Target
    ) -> Response:
        serving, definition, verb = target.serving, target.version.definition, request.asked.verb
        known = {each.name: each for each in definition.subresources()}
        found = known.get(path.subresource)
        if found is None and serving.builtin:
            raise errors.NotFound("the server could not find the requested resource", details={})
        if found is None:
            raise errors.not_found(serving.group, serving.plural, path.name)
        if verb not in found.verbs:
            raise verb_not_allowed(serving, verb)
        own = HANDLERS.get((serving.group, serving.plural, found.name)) if serving.builtin else None
        if own is not None:
            return await own(self._subresource_call(request, target))
        if definition.scale is not None and found.name == "scale":
            return await do_scale(self._context, request, target, verb, definition.scale)
        if verb == "get":
            return await verbs.do_get(self._context, request, target)
        handler = {"update": verbs.do_update, "patch": verbs.do_patch}.get(verb)
        if handler is None:
            # Listed by discovery and not implemented here: serviceaccounts/token.
            raise errors.NotFound("the server could not find the requested resource", details={})
        return await handler(self._context, request, target, path.subresource)

    async def _serve_review(self, request: Request, target: Target) -> Response:
        obj, form = await verbs.read_review(self._context, request, target)
        if form.transform:
            raise not_acceptable(request)
        answer = await self._reviews.answer(obj, request.asked, self._context.timestamp())
        return typed_response(201, answer, form)


def _log_access(request: Request, response: Response, seconds: float, failure: object) -> None:
    """Log one line and its values as fields, bodies never. Servers in tests read ``failure``."""
    fields = {
        "method": request.method,
        "path": request.path,
        "status": response.status,
        "user": request.asked.user.name,
        "milliseconds": round(seconds * 1000, 3),
        "bytes": response.length,
    }
    extra = {"fields": fields, "failure": failure}
    log.info("%s %s %d %s %.3fms %dB", *fields.values(), extra=extra)
