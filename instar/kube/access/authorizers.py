"""The Authorizer interface, its simple implementations, and the chain that combines them.

Used by ``server/app.py`` for every request; RBAC (``rbac/authorizer.py``) and the webhook
authorizer implement it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import NamedTuple, Protocol

from instar.base.errors import AccessDenied, ApiError, Unclassified, qualified
from instar.base.field_errors import go_quote
from instar.kube.access.attributes import ADMIN_GROUP, Attributes, User

Rules = list[dict[str, list[str]]]


class AuthzVerdict(Enum):
    """What an authorizer says of a request."""

    ALLOW = auto()
    DENY = auto()
    """A final denial: later authorizers are not consulted."""
    NO_OPINION = auto()


class AuthzDecision(NamedTuple):
    """Verdict of an authorizer and its reason."""

    verdict: AuthzVerdict
    reason: str = ""
    error: str = ""
    """Error that kept an authorizer from deciding."""

    @property
    def allowed(self) -> bool:
        return self.verdict is AuthzVerdict.ALLOW


ALLOWED = AuthzDecision(AuthzVerdict.ALLOW)


class UserRules(NamedTuple):
    """Permissions of a user in a namespace, as far as they can be listed."""

    resources: Rules
    paths: Rules
    incomplete: bool = False
    error: str = ""


class Authorizer(Protocol):
    """Decides whether a user may make a request."""

    def decide(self, attributes: Attributes) -> AuthzDecision | None:
        """Decide at once; None if a remote authorizer must be called (``ask``)."""
        ...

    async def ask(self, attributes: Attributes) -> AuthzDecision:
        """Decide, with a remote call if necessary."""
        ...

    def rules(self, user: User, namespace: str) -> UserRules: ...

    def used(self, attributes: Attributes) -> None:
        """Record that an allowed request is carried out."""
        ...


class Recorder(Protocol):
    """Records requests that were carried out."""

    def note(self, attributes: Attributes) -> None: ...


class Immediate(ABC):
    """Base of authorizers that decide without I/O."""

    @abstractmethod
    def decide(self, attributes: Attributes) -> AuthzDecision: ...

    async def ask(self, attributes: Attributes) -> AuthzDecision:
        return self.decide(attributes)

    def used(self, attributes: Attributes) -> None:
        return


class AlwaysAllow(Immediate):
    """Allows every request."""

    def decide(self, attributes: Attributes) -> AuthzDecision:
        return ALLOWED

    def rules(self, user: User, namespace: str) -> UserRules:
        resources = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        return UserRules(resources, [{"verbs": ["*"], "nonResourceURLs": ["*"]}])


class DenyAllAuthorizer(Immediate):
    """Has no opinion on any request, so that nothing is allowed (``AlwaysDeny``)."""

    def decide(self, attributes: Attributes) -> AuthzDecision:
        return AuthzDecision(AuthzVerdict.NO_OPINION, "Everything is forbidden.")

    def rules(self, user: User, namespace: str) -> UserRules:
        return UserRules([], [])


class AllowedPaths(Immediate):
    """Allows these paths to every user, as API servers behind an aggregation layer do for health
    checks; no opinion on everything else."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)

    def decide(self, attributes: Attributes) -> AuthzDecision:
        if not attributes.resource and attributes.path in self._paths:
            return ALLOWED
        return AuthzDecision(AuthzVerdict.NO_OPINION)

    def rules(self, user: User, namespace: str) -> UserRules:
        return UserRules([], [{"verbs": ["*"], "nonResourceURLs": sorted(self._paths)}])


class Abstaining(Immediate):
    """Authorization mode for components that this server does not have (``Node``): no opinion."""

    def decide(self, attributes: Attributes) -> AuthzDecision:
        return AuthzDecision(AuthzVerdict.NO_OPINION)

    def rules(self, user: User, namespace: str) -> UserRules:
        return UserRules(
            [], [], incomplete=True, error="node authorizer does not support user rule resolution"
        )


class Authorizers:
    """Authorizer chain: the first that allows or denies decides.

    Before all of them ``system:masters`` is allowed everything, which no object can revoke.
    """

    def __init__(self, several: Sequence[Authorizer], recorder: Recorder | None = None) -> None:
        self._several = tuple(several)
        self.recorder = recorder

    def used(self, attributes: Attributes) -> None:
        if self.recorder is not None:
            self.recorder.note(attributes)

    def decide(self, attributes: Attributes) -> AuthzDecision | None:
        if ADMIN_GROUP in attributes.user.groups:
            return ALLOWED
        undecided = []
        for one in self._several:
            decision = one.decide(attributes)
            if decision is None or decision.verdict is not AuthzVerdict.NO_OPINION:
                return decision
            undecided.append(decision)
        return _no_opinion(undecided)

    async def ask(self, attributes: Attributes) -> AuthzDecision:
        if ADMIN_GROUP in attributes.user.groups:
            return ALLOWED
        undecided = []
        for one in self._several:
            decision = one.decide(attributes) or await one.ask(attributes)
            if decision.verdict is not AuthzVerdict.NO_OPINION:
                return decision
            undecided.append(decision)
        return _no_opinion(undecided)

    def rules(self, user: User, namespace: str) -> UserRules:
        held = [one.rules(user, namespace) for one in self._several]
        return UserRules(
            [rule for each in held for rule in each.resources],
            [rule for each in held for rule in each.paths],
            any(each.incomplete for each in held),
            ", ".join(each.error for each in held if each.error),
        )


def _no_opinion(undecided: list[AuthzDecision]) -> AuthzDecision:
    if len(undecided) == 1:
        return undecided[0]
    reasons = "\n".join(one.reason for one in undecided if one.reason)
    errors = ", ".join(one.error for one in undecided if one.error)
    return AuthzDecision(AuthzVerdict.NO_OPINION, reasons, errors)


async def authorize(authorizer: Authorizer, attributes: Attributes) -> None:
    """Decide on a request. Raises ``Forbidden`` with upstream's message."""
    grant(authorizer, attributes, authorizer.decide(attributes) or await authorizer.ask(attributes))


def grant(
    authorizer: Authorizer,
    attributes: Attributes,
    decision: AuthzDecision,
    note: Callable[[AuthzDecision], None] | None = None,
) -> None:
    """Raise ``Forbidden`` if the request was denied. ``note`` receives the decision."""
    if note is not None:
        note(decision)
    if decision.verdict is not AuthzVerdict.ALLOW:
        raise refused(attributes, decision)
    authorizer.used(attributes)


def refused(attributes: Attributes, decision: AuthzDecision) -> ApiError:
    """Return the 403 for a request that no authorizer allowed."""
    if decision.error and decision.verdict is AuthzVerdict.NO_OPINION:
        return Unclassified(f'Internal Server Error: "{attributes.path}": {decision.error}')
    reason = f": {decision.reason}" if decision.reason else ""
    if not attributes.resource:
        text = (
            f"forbidden: User {go_quote(attributes.user.name)} cannot {attributes.verb} path "
            f"{go_quote(attributes.path)}"
        )
        return AccessDenied(_escaped(text) + reason, details={})
    resource = (
        f"{attributes.resource}/{attributes.subresource}"
        if attributes.subresource
        else attributes.resource
    )
    where = (
        f" in the namespace {go_quote(attributes.namespace)}"
        if attributes.namespace
        else " at the cluster scope"
    )
    named = f" {go_quote(attributes.name)}" if attributes.name else ""
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    text = (
        f"User {go_quote(attributes.user.name)} cannot {attributes.verb} resource "
        f"{go_quote(resource)} in API group {go_quote(attributes.group)}{where}"
    )
    return AccessDenied(
        f"{qualified(attributes.resource, attributes.group)}{named} is forbidden: "
        f"{_escaped(text)}{reason}",
        details={name: value for name, value in details.items() if value},
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
