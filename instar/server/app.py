"""From request to response: who asks, what is asked, who answers. Every error ends here."""

from __future__ import annotations

import asyncio
import logging
import random
from time import perf_counter

from instar import errors
from instar.access.attributes import User
from instar.access.authorizers import authorize
from instar.conversion.measured import ConversionMetrics
from instar.errors import ApiError
from instar.registry.resources.catalog import Catalog
from instar.registry.resources.context import Context
from instar.registry.resources.resource import Resource, Target
from instar.registry.resources.serving import Serving
from instar.server import verbs
from instar.server.auth import Authenticator
from instar.server.compress import compress
from instar.server.converting import as_asked, waiting_counted
from instar.server.deadlines import check_timeout, limit, too_late
from instar.server.documents import Documents
from instar.server.health import Health
from instar.server.impersonation import check_impersonation
from instar.server.insight import Insight
from instar.server.metrics import Metrics
from instar.server.negotiate import ACCEPTED
from instar.server.problems import page_not_found, problem, told, unexpected
from instar.server.request import Request, ResourcePath, attributes_of, parse_resource_path
from instar.server.responses import Response, typed_response
from instar.server.reviews import Reviews
from instar.server.scaling import do_scale
from instar.server.subresources import HANDLERS, Call
from instar.server.warnings import warning_headers

log = logging.getLogger("instar.access")
_PATH_CACHE = 4096
_LONGEST_KEPT_PATH = 512
"""Anybody may ask for any path, before it is known who asks."""
_BODILESS = ("GET", "HEAD")
_FLOW_CONTROL = (
    (b"x-kubernetes-pf-flowschema-uid", b"8b0d6f6c-6f0c-5c8e-9d0f-5a1f0b8f3c11"),
    (b"x-kubernetes-pf-prioritylevel-uid", b"3f1a7c52-0d2b-5d4e-8c77-2f6b9e0a4d22"),
)
"""Clients may look for these; there is one level, and everyone is in it."""


class App:
    """Handles one request at a time per call; holds no state of any request."""

    def __init__(
        self,
        *,
        context: Context,
        catalog: Catalog,
        authenticator: Authenticator,
        health: Health,
        metrics: Metrics,
        conversion_metrics: ConversionMetrics,
        insight: Insight,
        request_timeout: float = 60.0,
    ) -> None:
        self._context = context
        self._catalog = catalog
        self._authenticator = authenticator
        self._health = health
        self._metrics = metrics
        self._conversion_metrics = conversion_metrics
        self._insight = insight
        self._request_timeout = request_timeout
        self._documents = Documents(catalog)
        self._reviews = Reviews(authenticator, context.authorizer)
        self._paths: dict[str, ResourcePath | None] = {}
        self.ready = False
        """Whether the storage has been read; until then only health is answered."""

    async def __call__(self, request: Request, peer: User | None) -> Response:
        began = request.began = perf_counter()
        try:
            response = await self._answer(request, peer)
        except ApiError as error:
            response = await told(error, request)
        except asyncio.CancelledError:
            if not request.expired:
                raise
            response = problem(too_late(request), request)
        except Exception as error:
            response = unexpected(error, request)
        if b"accept-encoding" in request.headers:
            await compress(request, response)
        if request.warnings:
            response.headers += warning_headers(request.warnings)
        response.headers += (
            (b"audit-id", request.headers.get(b"audit-id") or _audit_id()),
            (b"cache-control", b"no-cache, private"),
            *_FLOW_CONTROL,
        )
        self._metrics.served(request.method, response.status, perf_counter() - began)
        if log.isEnabledFor(logging.INFO):
            who = request.asked.user.name
            log.info("%s %s %d %s", request.method, request.path, response.status, who)
        return response

    async def _answer(self, request: Request, peer: User | None) -> Response:
        if request.query:
            check_timeout(request)
        path = self._resource_path(request.path)
        if path is None:
            public = self._health.respond(request)
            if public is not None:
                return public
        user = self._authenticator.user_of(request, peer)
        if user is None:
            raise errors.Unauthorized
        check_impersonation(request)
        request.asked = attributes_of(request, path, user)
        if not self.ready:
            raise errors.ServiceUnavailable(
                "the server is starting and waits for its storage", retry_after=1
            )
        authorize(self._context.authorizer, request.asked)
        if path is not None:
            return await self._resource(request, path)
        if request.path == "/metrics":
            return self._metrics.respond()
        told = self._insight.respond(request)
        if told is not None:
            return told
        return await self._document(request)

    def _resource_path(self, text: str) -> ResourcePath | None:
        if text in self._paths:
            return self._paths[text]
        path = parse_resource_path(text)
        if len(text) > _LONGEST_KEPT_PATH:
            return path
        if len(self._paths) >= _PATH_CACHE:
            self._paths.clear()
        self._paths[text] = path
        return path

    async def _document(self, request: Request) -> Response:
        limit(request, "get", self._request_timeout)
        parts = [part for part in request.path.split("/") if part]
        if request.method not in _BODILESS:
            return page_not_found()
        await self._context.backend.caught_up()
        found = await self._documents.respond(request, parts)
        return page_not_found() if found is None else found

    async def _resource(self, request: Request, path: ResourcePath) -> Response:
        verb = request.asked.verb
        limit(request, verb, self._request_timeout)
        await self._context.backend.caught_up()
        resource = self._catalog.find(path.group, path.plural)
        if resource is not None:
            self._insight.note(request.asked, resource, request.header(b"user-agent"))
        target = None if resource is None else _target(resource, path, verb)
        if target is None:
            target = await self._late_target(path, verb)
        if target is None:
            return page_not_found()
        if target.version.deprecation is not None:
            request.warn(target.version.deprecation)
        target = as_asked(request, target)
        if not target.serving.converts_remotely:
            return await self._verb(request, path, target)
        with waiting_counted(self._conversion_metrics, target):
            return await self._verb(request, path, target)

    async def _late_target(self, path: ResourcePath, verb: str) -> Target | None:
        """A CRD may have been written through another replica a moment ago."""
        await self._context.backend.consistent()
        resource = self._catalog.find(path.group, path.plural)
        return None if resource is None else _target(resource, path, verb)

    async def _verb(self, request: Request, path: ResourcePath, target: Target) -> Response:
        serving, verb = target.serving, request.asked.verb
        if path.subresource:
            return await self._subresource(request, path, target)
        handler = verbs.VERBS.get(verb)
        offered = serving.verbs is None or verb in serving.verbs
        named_create = serving.builtin and verb == "create" and bool(path.name)
        if handler is None or not offered or named_create:
            raise _not_allowed(serving, verb)
        own = HANDLERS.get((serving.group, serving.plural, ""))
        if own is not None:
            return await own(Call(self._context, self._catalog, request, target))
        if serving.verbs == ("create",):
            return await self._review(request, target)
        return await handler(self._context, request, target)

    async def _subresource(self, request: Request, path: ResourcePath, target: Target) -> Response:
        serving, definition, verb = target.serving, target.version.definition, request.asked.verb
        known = {each.name: each for each in definition.subresources()}
        found = known.get(path.subresource)
        if found is None:
            raise errors.not_found(serving.group, serving.plural, path.name)
        if verb not in found.verbs:
            raise _not_allowed(serving, verb)
        own = HANDLERS.get((serving.group, serving.plural, found.name)) if serving.builtin else None
        if own is not None:
            return await own(Call(self._context, self._catalog, request, target))
        if definition.scale is not None and found.name == "scale":
            return await do_scale(self._context, request, target, verb, definition.scale)
        if verb == "get":
            return await verbs.do_get(self._context, request, target)
        handler = {"update": verbs.do_update, "patch": verbs.do_patch}.get(verb)
        if handler is None:
            # Offered by discovery, and nobody here does it yet: serviceaccounts/token.
            raise errors.NotFound("the server could not find the requested resource", details={})
        return await handler(self._context, request, target, path.subresource)

    async def _review(self, request: Request, target: Target) -> Response:
        obj, form = verbs.read_body(request, target)
        if form.transform:
            raise errors.NotAcceptable(f"only the following media types are accepted: {ACCEPTED}")
        answer = self._reviews.answer(target.serving.plural, obj, request.asked.user)
        assert answer is not None
        return typed_response(201, answer, form)


def _not_allowed(serving: Serving, verb: str) -> errors.MethodNotAllowed:
    """Built-ins answer through upstream's router, which has words of its own."""
    if serving.builtin:
        text = "the server does not allow this method on the requested resource"
        return errors.MethodNotAllowed(text, details={})
    return errors.method_not_allowed(serving.group, serving.plural, verb)


def _audit_id() -> bytes:
    """Unique, not secret: the system's randomness would cost more than the answer."""
    digits = b"%032x" % random.getrandbits(128)
    return b"-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _target(resource: Resource, path: ResourcePath, verb: str) -> Target | None:
    """None when upstream's handler would decline: wrong scope, version not served, not accepted."""
    serving = resource.serving
    version = serving.served(path.version)
    if version is None:
        return None
    if path.namespace and not serving.namespaced:
        return None
    if serving.namespaced and not path.namespace and verb not in ("list", "watch"):
        return None
    crd = resource.crd
    if not (crd.is_true("NamesAccepted") or crd.is_true("Established")):
        return None
    return Target(resource, serving, resource.codec, version, path.namespace, path.name)
