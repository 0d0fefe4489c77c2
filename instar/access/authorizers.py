"""Whether a request is granted: the seam every kind of authorisation stands behind."""

from __future__ import annotations

from typing import Protocol

from instar.access.attributes import Attributes, User
from instar.errors import Forbidden, qualified

Rules = list[dict[str, list[str]]]


class Authorizer(Protocol):
    """Says whether a user may do something; the text is the reason of a refusal."""

    def refusal(self, asked: Attributes) -> str | None: ...

    def rules(self, user: User, namespace: str) -> tuple[Rules, Rules]:
        """What the user may do to resources and to other paths, as a rules review lists it."""
        ...


class AlwaysAllow:
    """Everyone who is known may do everything."""

    def rules(self, user: User, namespace: str) -> tuple[Rules, Rules]:
        resources = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        return resources, [{"verbs": ["*"], "nonResourceURLs": ["*"]}]

    def refusal(self, asked: Attributes) -> str | None:
        return None


def authorize(authorizer: Authorizer, asked: Attributes) -> None:
    """Raises ``Forbidden`` with upstream's sentence."""
    refusal = authorizer.refusal(asked)
    if refusal is not None:
        raise _forbidden(asked, refusal)


def _forbidden(asked: Attributes, reason: str) -> Forbidden:
    told = f": {reason}" if reason else ""
    if not asked.resource:
        text = f'forbidden: User "{asked.user.name}" cannot {asked.verb} path "{asked.path}"{told}'
        return Forbidden(text, details={})
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    where = f' in the namespace "{asked.namespace}"' if asked.namespace else " at the cluster scope"
    named = f' "{asked.name}"' if asked.name else ""
    details = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    return Forbidden(
        f"{qualified(asked.resource, asked.group)}{named} is forbidden: "
        f'User "{asked.user.name}" cannot {asked.verb} resource "{resource}" in API group '
        f'"{asked.group}"{where}{told}',
        details={name: value for name, value in details.items() if value},
    )
