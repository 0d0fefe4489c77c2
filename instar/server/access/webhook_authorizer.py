"""Webhook authorizer: a remote service decides, called with a SubjectAccessReview.

The authorizer chain calls it for the mode Webhook, and in a cluster that is followed for the main
cluster. Decisions are cached for a limited time, and equal questions share one call. A webhook that
cannot be reached has no opinion, so it allows nothing.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.base.single_flight import SingleFlight
from instar.kube.access.access_reviews import field_requirements, label_requirements
from instar.kube.access.attributes import Attributes, User
from instar.kube.access.authorizers import AuthzDecision, AuthzVerdict, UserRules
from instar.wire.client.kubeconfig import KubeconfigError
from instar.wire.client.review_client import ReviewClient

_MOST_KEPT = 8192
"""Cached answers; at this number the cache is emptied."""
_LONGEST_KEY = 4096
"""Characters of a review; answers to longer ones are not cached."""
_INCOMPLETE_TEXT = "webhook authorizer does not support user rule resolution"


class WebhookAuthorizer:
    """Calls the webhook, and caches its answers."""

    def __init__(
        self,
        client: ReviewClient,
        believed: tuple[float, float] = (300.0, 30.0),
    ) -> None:
        """``believed``: seconds for which allowed and denied answers are cached."""
        self._client = client
        self._yes_seconds, self._no_seconds = believed
        self._kept: dict[tuple[object, ...], tuple[AuthzDecision, float]] = {}
        self._calls = SingleFlight()

    @classmethod
    def of(cls, kubeconfig: Path | None, believed: tuple[float, float]) -> WebhookAuthorizer:
        """Raises ``ValueError`` for a file that cannot be used."""
        if kubeconfig is None:
            raise ValueError("authorization Webhook needs --authorization-webhook-config-file")
        try:
            return cls(ReviewClient.of(kubeconfig, "instar-authorizer"), believed)
        except KubeconfigError as error:
            raise ValueError(f"authorization webhook: {error}") from error

    async def close(self) -> None:
        await self._client.close()

    def decide(self, asked: Attributes) -> AuthzDecision | None:
        kept = self._kept.get(_key(asked))
        if kept is None:
            return None
        decision, until = kept
        return decision if monotonic() < until else None

    async def ask(self, asked: Attributes) -> AuthzDecision:
        return await self._calls.once(_key(asked), lambda: self._call(asked))

    async def _call(self, asked: Attributes) -> AuthzDecision:
        try:
            status = _status(await self._client.post(review_of(asked)))
        except ApiError as error:
            return AuthzDecision(AuthzVerdict.NO_OPINION, error=error.message)
        decision = _decision(status)
        key = _key(asked)
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        if len(str(key)) <= _LONGEST_KEY:  # reviews may contain texts of any length
            seconds = self._yes_seconds if decision.allowed else self._no_seconds
            self._kept[key] = (decision, monotonic() + seconds)
        return decision

    def used(self, asked: Attributes) -> None:
        return

    def rules(self, user: User, namespace: str) -> UserRules:
        return UserRules([], [], incomplete=True, error=_INCOMPLETE_TEXT)


def review_of(asked: Attributes) -> Object:
    """The SubjectAccessReview for a request."""
    user = asked.user
    spec: Object = {"user": user.name}
    if user.groups:
        spec["groups"] = list(user.groups)
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    if asked.resource:
        names = ("namespace", "verb", "group", "version", "resource", "subresource", "name")
        given = {name: getattr(asked, name) for name in names}
        attributes: Object = {name: value for name, value in given.items() if value}
        fields = field_requirements(asked.field_selector)
        labels = label_requirements(asked.label_selector)
        if fields:
            attributes["fieldSelector"] = {"requirements": fields}
        if labels:
            attributes["labelSelector"] = {"requirements": labels}
        spec["resourceAttributes"] = attributes
    else:
        spec["nonResourceAttributes"] = {"path": asked.path, "verb": asked.verb}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": spec,
    }


def _status(answer: Object) -> Object:
    status = answer.get("status")
    return status if isinstance(status, dict) else {}


def _decision(status: Object) -> AuthzDecision:
    """Return the decision; an answer that is both allowed and denied counts as denied."""
    reason = status.get("reason")
    told = reason if isinstance(reason, str) else ""
    allowed, denied = status.get("allowed") is True, status.get("denied") is True
    if denied:
        return AuthzDecision(AuthzVerdict.DENY, told)
    return AuthzDecision(AuthzVerdict.ALLOW if allowed else AuthzVerdict.NO_OPINION, told)


def _key(asked: Attributes) -> tuple[object, ...]:
    user = asked.user
    extra = tuple(sorted(user.extra.items()))
    return (user.name, user.uid, user.groups, extra, *asked[1:])
