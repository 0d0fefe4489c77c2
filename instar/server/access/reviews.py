"""Access reviews: TokenReview, SubjectAccessReview and similar kinds, which are answered and not
stored.

``server/app.py`` calls it for kinds that can only be created. Decisions come from the authorizer
and the token authenticators.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from instar.base import errors, offload
from instar.base.json_values import Object
from instar.kube.access.access_reviews import (
    attributes_of_review,
    selector_size,
    selector_troubles,
    spec_errors,
)
from instar.kube.access.attributes import Attributes, User
from instar.kube.access.authorizers import Authorizer
from instar.server.identity.tokens import TokenRejected, Tokens

Answer = Callable[[Object, Attributes], Awaitable[Object]]
_AUTHORIZATION = "authorization.k8s.io"


class Reviews:
    """Answers reviews with the token authenticators and the authorizer."""

    def __init__(self, tokens: Tokens, authorizer: Authorizer) -> None:
        self._tokens = tokens
        self._authorizer = authorizer
        self._answers: dict[str, Answer] = {
            "selfsubjectaccessreviews": self._access,
            "subjectaccessreviews": self._access,
            "localsubjectaccessreviews": self._access,
            "selfsubjectrulesreviews": self._rules,
            "selfsubjectreviews": self._self,
            "tokenreviews": self._token,
        }

    async def answer(self, review: Object, asked: Attributes, now: str) -> Object:
        """The review with its ``status``; ``review`` is decoded and is changed in place."""
        answered = await self._answers[asked.resource](review, asked)
        if asked.resource == "selfsubjectreviews":
            answered["metadata"] = {"creationTimestamp": now}
        return answered

    async def _access(self, review: Object, asked: Attributes) -> Object:
        if asked.resource == "localsubjectaccessreviews":
            namespace = review["metadata"].setdefault("namespace", asked.namespace)
            if namespace != asked.namespace:
                raise errors.BadRequest(
                    "the namespace of the provided object does not match the namespace sent on "
                    "the request"
                )
        found = spec_errors(review, asked.resource)
        if found:
            refusal = errors.invalid(_AUTHORIZATION, "", "", found)
            refusal.details = {k: v for k, v in (refusal.details or {}).items() if v != ""}
            raise refusal
        spec = review["spec"]
        user = asked.user if asked.resource.startswith("self") else _user_of_spec(spec)
        decision = await self._authorizer.ask(attributes_of_review(spec, user))
        status: Object = {"allowed": decision.allowed}
        if not decision.allowed and decision.verdict.name == "DENY":
            status["denied"] = True
        if decision.reason:
            status["reason"] = decision.reason
        selectors = await offload.run(selector_size(spec), lambda: list(selector_troubles(spec)))
        troubles = [text for text in (decision.error, *selectors) if text]
        if troubles:
            status["evaluationError"] = "; ".join(troubles)
        return {**review, "status": status}

    async def _rules(self, review: Object, asked: Attributes) -> Object:
        namespace = (review.get("spec") or {}).get("namespace") or ""
        if not namespace:
            raise errors.BadRequest("no namespace on request")
        held = self._authorizer.rules(asked.user, namespace)
        status: Object = {
            "resourceRules": held.resources,
            "nonResourceRules": held.paths,
            "incomplete": held.incomplete,
        }
        if held.error:
            status["evaluationError"] = held.error
        return {**review, "metadata": {}, "spec": {}, "status": status}

    async def _self(self, review: Object, asked: Attributes) -> Object:
        return {
            "kind": review["kind"],
            "apiVersion": review["apiVersion"],
            "metadata": {},
            "status": {"userInfo": _info(asked.user)},
        }

    async def _token(self, review: Object, asked: Attributes) -> Object:
        spec = review.get("spec") or {}
        token = spec.get("token") or ""
        if not token:
            raise errors.BadRequest("token is required for TokenReview in authentication")
        audiences = tuple(spec.get("audiences") or ()) or self._tokens.audiences
        try:
            found = await self._tokens.review(token, audiences)
        except TokenRejected as refused:
            return {**review, "status": {"user": {}, "error": str(refused)}}
        status = {
            "authenticated": True,
            "user": _info(found.user),
            "audiences": list(found.audiences),
        }
        return {**review, "status": status}


def _user_of_spec(spec: Object) -> User:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    groups = tuple(spec.get("groups") or ())
    return User(spec.get("user") or "", groups, spec.get("uid") or "", extra)


def _info(user: User) -> dict[str, Any]:
    info: dict[str, Any] = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info
