"""OwnerReferencesPermissionEnforcement plugin: checks permissions for changing owner references.

The admission chain (``server/lifecycle/admission_setup.py``) calls it for each write. The writer
needs delete on the object to change owners, and update on an owner's finalizers to set
blockOwnerDeletion. Off by default.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.base import errors
from instar.base.json_values import Object
from instar.kube.access.attributes import Attributes
from instar.kube.access.authorizers import Authorizer
from instar.kube.api.names import parse_group_version
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.resource import Resource
from instar.server.registry.resources.serving import Serving

OfKind = Callable[[str, str], Resource | None]


class OwnerPermissions:
    def __init__(self, authorizer: Authorizer, of_kind: OfKind) -> None:
        self._authorizer = authorizer
        self._of_kind = of_kind

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return PluginPhases.VALIDATE

    def admit(self, operation: Operation) -> None:
        return

    async def validate(self, operation: Operation) -> None:
        if operation.verb not in (Verb.CREATE, Verb.UPDATE) or operation.subresource == "status":
            return
        new, old = _owners(operation.obj), _owners(operation.old)
        if new == old:
            return
        if operation.verb is Verb.UPDATE:
            await self._check_deletion(operation)
        held = {owner.get("uid") for owner in old if owner.get("blockOwnerDeletion")}
        for owner in new:
            if owner.get("blockOwnerDeletion") and owner.get("uid") not in held:
                await self._check_holding(operation, owner)

    async def _check_deletion(self, operation: Operation) -> None:
        serving, target = operation.target.serving, operation.target
        asked = Attributes(
            operation.asked.user,
            "delete",
            group=serving.group,
            version=target.version.name,
            resource=serving.plural,
            namespace=target.namespace,
            name=operation.name,
        )
        await self._check(operation, asked, "cannot set an ownerRef on a resource you can't delete")

    async def _check_holding(self, operation: Operation, owner: Object) -> None:
        user = operation.asked.user
        everywhere = Attributes(user, "update", group="*", resource="*", subresource="finalizers")
        if (await self._authorizer.ask(everywhere)).allowed:
            return
        group, version = parse_group_version(str(owner.get("apiVersion", "")))
        kind = str(owner.get("kind", ""))
        resource = self._of_kind(group, kind)
        if resource is None or resource.serving.served(version) is None:
            shown = owner.get("apiVersion", "")
            raise _refused(
                operation,
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for "
                f'APIVersion {shown} Kind {kind}: no matches for kind "{kind}" in version '
                f'"{shown}"',
            )
        asked = Attributes(
            user,
            "update",
            group=group,
            version=version,
            resource=resource.serving.plural,
            subresource="finalizers",
            namespace=operation.target.namespace if resource.serving.namespaced else "",
            name=str(owner.get("name", "")),
        )
        await self._check(
            operation,
            asked,
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't "
            "set finalizers on",
        )

    async def _check(self, operation: Operation, asked: Attributes, text: str) -> None:
        decision = await self._authorizer.ask(asked)
        if not decision.allowed:
            told = decision.error or "<nil>"
            raise _refused(operation, f"{text}: {decision.reason}, {told}")


def _owners(obj: Object | None) -> list[Object]:
    metadata = (obj or {}).get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    return owners if isinstance(owners, list) else []


def _refused(operation: Operation, text: str) -> errors.Forbidden:
    serving = operation.target.serving
    return errors.forbidden(serving.group, serving.plural, operation.name, text)
