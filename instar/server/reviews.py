"""Reviews: questions a client asks about itself, answered and forgotten, never stored."""

from __future__ import annotations

from collections.abc import Callable

from instar.access.attributes import Attributes, User
from instar.access.authorizers import Authorizer
from instar.plain import Object
from instar.server.auth import Authenticator

Answer = Callable[[Object], Object]


class Reviews:
    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer

    async def answer(self, plural: str, review: Object, user: User) -> Object | None:
        """The review with its ``status``; None when ``plural`` is no review."""
        spec = _member(review, "spec")
        match plural:
            case "selfsubjectaccessreviews":
                status = await self._access(spec, user)
            case "subjectaccessreviews" | "localsubjectaccessreviews":
                status = await self._access(spec, _asked_about(spec))
            case "selfsubjectrulesreviews":
                status = self._rules(user, str(spec.get("namespace", "")))
            case "selfsubjectreviews":
                status = {"userInfo": _info(user)}
            case "tokenreviews":
                status = self._token(spec)
            case _:
                return None
        return {**review, "status": status}

    async def _access(self, spec: Object, user: User) -> Object:
        asked = _member(spec, "resourceAttributes")
        paths = _member(spec, "nonResourceAttributes")
        decision = await self._authorizer.ask(
            Attributes(
                user,
                verb=str(asked.get("verb") or paths.get("verb") or ""),
                group=str(asked.get("group", "")),
                version=str(asked.get("version", "")),
                resource=str(asked.get("resource", "")),
                subresource=str(asked.get("subresource", "")),
                namespace=str(asked.get("namespace", "")),
                name=str(asked.get("name", "")),
                path=str(paths.get("path", "")),
            )
        )
        status: Object = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return status

    def _rules(self, user: User, namespace: str) -> Object:
        held = self._authorizer.rules(user, namespace)
        status: Object = {
            "resourceRules": held.resources,
            "nonResourceRules": held.paths,
            "incomplete": held.incomplete,
        }
        if held.error:
            status["evaluationError"] = held.error
        return status

    def _token(self, spec: Object) -> Object:
        user = self._authenticator.user_of_token(str(spec.get("token", "")))
        if user is None:
            return {"authenticated": False, "error": "the token is not known"}
        return {"authenticated": True, "user": _info(user)}


def _asked_about(spec: Object) -> User:
    groups = spec.get("groups")
    names = tuple(map(str, groups)) if isinstance(groups, list) else ()
    return User(str(spec.get("user", "")), names, str(spec.get("uid", "")))


def _member(obj: Object, name: str) -> Object:
    """An object's member that should be an object; anything else asks for nothing."""
    value = obj.get(name)
    return value if isinstance(value, dict) else {}


def _info(user: User) -> Object:
    info: Object = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    return info
