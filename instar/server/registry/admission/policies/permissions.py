"""Checks that the author of a policy may read the parameters it refers to.

Called by ``evaluators.py`` on writes of policies and bindings, so that a policy cannot reveal
objects to its author.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base import errors
from instar.base.field_errors import FieldError, forbidden
from instar.base.json_values import Object
from instar.kube.access.attributes import ADMIN_GROUP, Attributes, User
from instar.kube.access.authorizers import Authorizer
from instar.kube.api.names import GroupVersionKind, parse_group_version
from instar.server.registry.admission.policies.definitions import MUTATING, VALIDATING
from instar.server.registry.admission.policies.params import ParamSource
from instar.server.registry.resources.admission import Operation

if TYPE_CHECKING:
    from instar.server.registry.admission.policies.plugin import Policies

_WILDCARD = "*"


async def check_permissions(
    operation: Operation, authorizer: Authorizer, params: ParamSource, policies: Policies
) -> None:
    """Raise ``Invalid`` if a permission is missing. Superusers pass."""
    user, obj = operation.asked.user, operation.obj
    if ADMIN_GROUP in user.groups or obj is None or operation.subresource:
        return
    checker = _Checker(user, authorizer, params)
    plural = operation.target.serving.plural
    if plural in (VALIDATING[0], MUTATING[0]):
        found = await checker.policy(obj, operation.old)
    else:
        bound = policies.validating if plural == VALIDATING[1] else policies.mutating
        named = bound.policy(obj["spec"].get("policyName", ""))
        kind = None if named is None else named.param_kind
        found = await checker.binding(obj, operation.old, kind, known=named is not None)
    if found:
        serving, name = operation.target.serving, obj["metadata"].get("name", "")
        raise errors.invalid(serving.group, obj["kind"], name, found)


class _Checker:
    def __init__(self, user: User, authorizer: Authorizer, params: ParamSource) -> None:
        self._user, self._authorizer, self._params = user, authorizer, params

    async def policy(self, obj: Object, old: Object | None) -> list[FieldError]:
        kind = obj["spec"].get("paramKind")
        if kind is None or (old is not None and old["spec"].get("paramKind") == kind):
            return []
        gvk = GroupVersionKind(*parse_group_version(kind["apiVersion"]), kind["kind"])
        asked = (await self._reading("get", gvk))._replace(name=_WILDCARD, namespace=_WILDCARD)
        if (await self._authorizer.ask(asked)).allowed:
            return []
        told = (
            f'user {self._user_text()} must have "get" permission on all objects of the referenced '
            f"paramKind (kind={kind['kind']}, apiVersion={kind['apiVersion']})"
        )
        return [forbidden("spec.paramKind", told)]

    async def binding(
        self, obj: Object, old: Object | None, kind: GroupVersionKind | None, *, known: bool
    ) -> list[FieldError]:
        spec = obj["spec"]
        ref, before = spec.get("paramRef"), {} if old is None else old["spec"]
        same = before.get("paramRef") == ref and before.get("policyName") == spec.get("policyName")
        if ref is None or (old is not None and same):
            return []
        verb = "get" if ref.get("name") else "list"
        asked = (await self._reading(verb, kind))._replace(
            name=ref.get("name") or "", namespace=ref.get("namespace") or ""
        )
        if (await self._authorizer.ask(asked)).allowed:
            return []
        lacking = f'user {self._user_text()} does not have "{verb}" permission'
        everywhere = (
            f"to determine minimum required permissions and {lacking} for all groups, versions and "
            "resources"
        )
        told = f"{lacking} on the object referenced by paramRef"
        if not known:
            told = f"unable to get policy {spec.get('policyName', '')} {everywhere}"
        elif kind is not None and await self._params.kind(kind) is None:
            told = f"unable to resolve paramKind {kind} {everywhere}"
        return [forbidden("spec.paramRef", told)]

    async def _reading(self, verb: str, kind: GroupVersionKind | None) -> Attributes:
        if kind is None:
            return Attributes(self._user, verb, _WILDCARD, _WILDCARD, _WILDCARD)
        found = await self._params.kind(kind)
        resource = _WILDCARD if found is None else found.plural
        return Attributes(self._user, verb, kind.group, kind.version, resource)

    def _user_text(self) -> str:
        """Return the user as Go prints it."""
        user = self._user
        extra = " ".join(
            f"{name}:[{' '.join(values)}]" for name, values in sorted(user.extra.items())
        )
        return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
