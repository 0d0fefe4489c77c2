"""Whether a request is granted: the seam every kind of authorisation stands behind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import NamedTuple, Protocol

from instar.base.errors import AccessDenied, ApiError, Unclassified, qualified
from instar.base.field_errors import go_quote
from instar.kube.access.attributes import ADMIN_GROUP, Attributes, User

Rules = list[dict[str, list[str]]]


class AuthzVerdict(Enum):
    ALLOW = auto()
    DENY = auto()
    """Nobody else is asked."""
    NO_OPINION = auto()


class AuthzDecision(NamedTuple):
    verdict: AuthzVerdict
    reason: str = ""
    error: str = ""
    """What kept an authorizer from deciding."""

    @property
    def allowed(self) -> bool:
        return self.verdict is AuthzVerdict.ALLOW


ALLOWED = AuthzDecision(AuthzVerdict.ALLOW)


class UserRules(NamedTuple):
    """What a user may do in a namespace, as far as it can be listed."""

    resources: Rules
    paths: Rules
    incomplete: bool = False
    error: str = ""


class Authorizer(Protocol):
    def decide(self, asked: Attributes) -> AuthzDecision | None:
        """At once; None where somebody far away has to be asked."""
        ...

    async def ask(self, asked: Attributes) -> AuthzDecision:
        """The same, with all the time it takes."""
        ...

    def rules(self, user: User, namespace: str) -> UserRules: ...

    def used(self, asked: Attributes) -> None:
        """What was allowed is done now."""
        ...


class Recorder(Protocol):
    """Keeps what was done."""

    def note(self, asked: Attributes) -> None: ...


class Immediate(ABC):
    """An authorizer that knows all it needs."""

    @abstractmethod
    def decide(self, asked: Attributes) -> AuthzDecision: ...

    async def ask(self, asked: Attributes) -> AuthzDecision:
        return self.decide(asked)

    def used(self, asked: Attributes) -> None:
        return


class AlwaysAllow(Immediate):
    """Everyone who is known may do everything."""

    def decide(self, asked: Attributes) -> AuthzDecision:
        return ALLOWED

    def rules(self, user: User, namespace: str) -> UserRules:
        resources = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        return UserRules(resources, [{"verbs": ["*"], "nonResourceURLs": ["*"]}])


class DenyAllAuthorizer(Immediate):
    def decide(self, asked: Attributes) -> AuthzDecision:
        return AuthzDecision(AuthzVerdict.NO_OPINION, "Everything is forbidden.")

    def rules(self, user: User, namespace: str) -> UserRules:
        return UserRules([], [])


class Abstaining(Immediate):
    """A mode that is about parts this server does not have (``Node``)."""

    def decide(self, asked: Attributes) -> AuthzDecision:
        return AuthzDecision(AuthzVerdict.NO_OPINION)

    def rules(self, user: User, namespace: str) -> UserRules:
        return UserRules(
            [], [], incomplete=True, error="node authorizer does not support user rule resolution"
        )


class Authorizers:
    """One after the other: the first who allows or denies decides. Before all of them stands the
    rule no object can take away: ``system:masters`` may do everything."""

    def __init__(self, several: Sequence[Authorizer], recorder: Recorder | None = None) -> None:
        self._several = tuple(several)
        self.recorder = recorder

    def used(self, asked: Attributes) -> None:
        if self.recorder is not None:
            self.recorder.note(asked)

    def decide(self, asked: Attributes) -> AuthzDecision | None:
        if ADMIN_GROUP in asked.user.groups:
            return ALLOWED
        undecided = []
        for one in self._several:
            decision = one.decide(asked)
            if decision is None or decision.verdict is not AuthzVerdict.NO_OPINION:
                return decision
            undecided.append(decision)
        return _nobody(undecided)

    async def ask(self, asked: Attributes) -> AuthzDecision:
        if ADMIN_GROUP in asked.user.groups:
            return ALLOWED
        undecided = []
        for one in self._several:
            decision = one.decide(asked) or await one.ask(asked)
            if decision.verdict is not AuthzVerdict.NO_OPINION:
                return decision
            undecided.append(decision)
        return _nobody(undecided)

    def rules(self, user: User, namespace: str) -> UserRules:
        held = [one.rules(user, namespace) for one in self._several]
        return UserRules(
            [rule for each in held for rule in each.resources],
            [rule for each in held for rule in each.paths],
            any(each.incomplete for each in held),
            ", ".join(each.error for each in held if each.error),
        )


def _nobody(undecided: list[AuthzDecision]) -> AuthzDecision:
    if len(undecided) == 1:
        return undecided[0]
    reasons = "\n".join(one.reason for one in undecided if one.reason)
    errors = ", ".join(one.error for one in undecided if one.error)
    return AuthzDecision(AuthzVerdict.NO_OPINION, reasons, errors)


async def authorize(authorizer: Authorizer, asked: Attributes) -> None:
    """Raises ``Forbidden`` with upstream's sentence."""
    grant(authorizer, asked, authorizer.decide(asked) or await authorizer.ask(asked))


def grant(
    authorizer: Authorizer,
    asked: Attributes,
    decision: AuthzDecision,
    note: Callable[[AuthzDecision], None] | None = None,
) -> None:
    """Raises ``Forbidden`` where that was the decision. ``note`` is told what was decided."""
    if note is not None:
        note(decision)
    if decision.verdict is not AuthzVerdict.ALLOW:
        raise refused(asked, decision)
    authorizer.used(asked)


def refused(asked: Attributes, decision: AuthzDecision) -> ApiError:
    if decision.error and decision.verdict is AuthzVerdict.NO_OPINION:
        return Unclassified(f'Internal Server Error: "{asked.path}": {decision.error}')
    told = f": {decision.reason}" if decision.reason else ""
    if not asked.resource:
        text = (
            f"forbidden: User {go_quote(asked.user.name)} cannot {asked.verb} path "
            f"{go_quote(asked.path)}"
        )
        return AccessDenied(_escaped(text) + told, details={})
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    where = (
        f" in the namespace {go_quote(asked.namespace)}"
        if asked.namespace
        else " at the cluster scope"
    )
    named = f" {go_quote(asked.name)}" if asked.name else ""
    details = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    text = (
        f"User {go_quote(asked.user.name)} cannot {asked.verb} resource {go_quote(resource)} in "
        f"API group {go_quote(asked.group)}{where}"
    )
    return AccessDenied(
        f"{qualified(asked.resource, asked.group)}{named} is forbidden: {_escaped(text)}{told}",
        details={name: value for name, value in details.items() if value},
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
