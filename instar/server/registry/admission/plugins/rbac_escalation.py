"""RBAC escalation check: a user cannot grant permissions that the user does not have.

``server/lifecycle/composition.py`` adds it to the admission chain after all other plugins; the
chain calls it for each write. Exempt are admins and users with ``escalate`` on the role or ``bind``
for it. The check runs before the object is validated, as upstream's does.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.base import errors, limits, offload
from instar.base.field_errors import go_quote
from instar.base.json_values import Object
from instar.kube.access.attributes import ADMIN_GROUP, Attributes, User
from instar.kube.access.authorizers import Authorizer
from instar.kube.access.rbac.policy import GROUP, RbacPolicy, role_reference
from instar.kube.access.rbac.rules import PolicyRule, comparisons, rules_of, uncovered_rules
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving

_EVERYTHING = (
    PolicyRule(("*",), ("*",), ("*",)),
    PolicyRule(("*",), urls=("*",)),
)
_BYTES_A_STEP = 16
"""Cost of one rule comparison in bytes, for deciding whether to run in a thread."""
_ROLES = ("roles", "clusterroles")
_HOUSEKEEPING = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")
_RESOURCES = {"Role": "roles", "ClusterRole": "clusterroles"}


class EscalationCheck:
    def __init__(self, authorizer: Authorizer, policy: Callable[[], RbacPolicy]) -> None:
        self._authorizer = authorizer
        self._policy = policy

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return PluginPhases.ADMIT if serving.group == GROUP else PluginPhases.NONE

    async def admit(self, operation: Operation) -> None:
        if operation.obj is None:
            return
        if operation.verb is Verb.DELETE or ADMIN_GROUP in operation.asked.user.groups:
            return
        if operation.old is not None and _is_only_collector_metadata(operation.obj, operation.old):
            return
        if operation.target.serving.plural in _ROLES:
            await self._role(operation, operation.obj)
        else:
            await self._binding(operation, operation.obj)

    def validate(self, operation: Operation) -> None:
        return

    async def _role(self, operation: Operation, role: Object) -> None:
        asked = operation.asked
        if await self._may(asked._replace(verb="escalate")):
            return
        await self._confirm(operation, rules_of(role))
        gathers = _is_aggregated(role) or (
            operation.old is not None and _is_aggregated(operation.old)
        )
        if gathers and uncovered_rules(self._rules_of_user(operation), _EVERYTHING):
            raise _forbidden(
                operation, "must have cluster-admin privileges to use the aggregationRule"
            )

    async def _binding(self, operation: Operation, binding: Object) -> None:
        kind, name = role_reference(binding)
        namespace = operation.target.namespace
        resource = _RESOURCES.get(kind)
        if resource is None:
            raise errors.Unclassified(f"unsupported role reference kind: {go_quote(kind)}")
        asked = Attributes(operation.asked.user, "bind", GROUP, "v1", resource, "", namespace, name)
        if await self._may(asked):
            return
        rules = self._policy().role(kind, name, namespace)
        if rules is None:
            raise errors.not_found(GROUP, operation.target.serving.plural, name)
        await self._confirm(operation, rules)

    async def _may(self, asked: Attributes) -> bool:
        return (await self._authorizer.ask(asked)).allowed

    def _rules_of_user(self, operation: Operation) -> list[PolicyRule]:
        return self._policy().rules(operation.asked.user, operation.target.namespace)

    async def _confirm(self, operation: Operation, wanted: tuple[PolicyRule, ...]) -> None:
        held = self._rules_of_user(operation)
        steps = comparisons(len(held), wanted)
        if steps > limits.MAX_GRANT_COMPARISONS:
            raise _forbidden(
                operation,
                "it grants more at once than can be compared with the permissions currently held; "
                "use several smaller roles",
            )
        missing = await offload.run(
            steps * _BYTES_A_STEP, lambda: [str(rule) for rule in uncovered_rules(held, wanted)]
        )
        if not missing:
            return
        user, policy = operation.asked.user, self._policy()
        text = f"{_user_text(user)} is attempting to grant RBAC permissions not currently held:"
        unresolved = policy.missing(policy.grants(user, operation.target.namespace))
        told = "\n".join((text, *missing))
        if unresolved:
            told += f"; resolution errors: [{', '.join(unresolved)}]"
        raise _forbidden(operation, told)


def _user_text(user: User) -> str:
    groups = " ".join(map(go_quote, user.groups))
    return f"user {go_quote(user.name)} (groups=[{groups}])"


def _forbidden(operation: Operation, why: str) -> errors.Forbidden:
    serving = operation.target.serving
    name = (operation.obj or {})["metadata"].get("name", "")
    return errors.forbidden(serving.group, serving.plural, name, why)


def _is_aggregated(role: Object) -> bool:
    rule = role.get("aggregationRule")
    return isinstance(rule, dict) and bool(rule.get("clusterRoleSelectors"))


def _is_only_collector_metadata(new: Object, old: Object) -> bool:
    """Return whether only metadata written by garbage collectors changed, which grants nothing."""

    def rest(obj: Object) -> Object:
        metadata = {k: v for k, v in obj["metadata"].items() if k not in _HOUSEKEEPING}
        return {**obj, "metadata": metadata}

    return rest(new) == rest(old)
