"""ImagePolicyWebhook: a webhook decides about the images of a pod, by an ImageReview.

Off by default. If enabled, the admission chain (``server/lifecycle/admission_setup.py``) calls it
for pods. ``lifecycle/admission_config.py`` reads the plugin's configuration, whose format is
upstream's; ``wire/client/review_client.py`` calls the webhook. The webhook's decisions are cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import orjson

from instar.base.errors import ApiError, Forbidden, forbidden
from instar.base.json_values import Object
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving

IMAGE_POLICY = "ImagePolicyWebhook"
_API, _KIND = "imagepolicy.k8s.io/v1alpha1", "ImageReview"
_EPHEMERAL_CONTAINERS = "ephemeralcontainers"
_OURS = ".image-policy.k8s.io/"
_AUDIT = f"{IMAGE_POLICY.lower()}{_OURS}"
_MOST_KEPT = 1024

Post = Callable[[Object], Awaitable[Object]]
"""Sends a review and returns the answered one; raises ``ApiError``."""


class BadImagePolicy(ValueError):
    """An invalid configuration; one line says what is wrong."""


class ImagePolicy(NamedTuple):
    kubeconfig: Path
    """Names the webhook."""
    allow_seconds: float = 300.0
    """How long an approval is cached."""
    deny_seconds: float = 30.0
    first_pause: float = 0.5
    """Seconds before the webhook is asked again; later pauses are longer."""
    default_allow: bool = False
    """Whether pods are admitted while the webhook fails."""


class _Duration(NamedTuple):
    """A number of the configuration; -1 is none, 0 the default."""

    member: str
    scale: float
    least: float
    most: float
    default: float
    span: str
    """The range as upstream writes it."""


_RETRY = _Duration("retryBackoff", 0.001, 1e-9, 300.0, 0.5, "1ns and 5m0s")
_ALLOW = _Duration("allowTTL", 1.0, 1.0, 1800.0, 300.0, "1s and 30m0s")
_DENY = _Duration("denyTTL", 1.0, 1.0, 1800.0, 30.0, "1s and 30m0s")


def read_image_policy(document: Any) -> ImagePolicy:
    """Parse the plugin's configuration. Raises ``BadImagePolicy``."""
    given = document.get("imagePolicy") if isinstance(document, dict) else None
    if not isinstance(given, dict):
        raise BadImagePolicy("no config specified")
    kubeconfig, default_allow = given.get("kubeConfigFile"), given.get("defaultAllow", False)
    if not isinstance(kubeconfig, str) or not kubeconfig:
        raise BadImagePolicy("imagePolicy.kubeConfigFile: expected the path of a kubeconfig")
    if not isinstance(default_allow, bool):
        raise BadImagePolicy("imagePolicy.defaultAllow: expected true or false")
    first_pause, allow, deny = (_seconds(given, each) for each in (_RETRY, _ALLOW, _DENY))
    return ImagePolicy(Path(kubeconfig), allow, deny, first_pause, default_allow)


def _seconds(given: Object, duration: _Duration) -> float:
    value = given.get(duration.member) or 0
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadImagePolicy(f"imagePolicy.{duration.member}: expected a whole number")
    if value == -1:
        return 0.0
    if value == 0:
        return duration.default
    seconds = value * duration.scale
    if not duration.least <= seconds <= duration.most:
        raise BadImagePolicy(
            f"imagePolicy.{duration.member}: valid value is between {duration.span}, got {value}"
        )
    return seconds


class ImagePolicyWebhook:
    """Asks the webhook about new and changed pods, and about ephemeral containers."""

    def __init__(
        self, policy: ImagePolicy, post: Post, clock: Callable[[], float] = monotonic
    ) -> None:
        self._policy, self._post, self._clock = policy, post, clock
        self._kept: OrderedDict[bytes, tuple[Object, float]] = OrderedDict()

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        pods = (serving.group, serving.plural) == ("", "pods")
        return (
            PluginPhases.VALIDATE
            if pods and verb in (Verb.CREATE, Verb.UPDATE)
            else PluginPhases.NONE
        )

    def admit(self, operation: Operation) -> None:
        return

    def validate(self, operation: Operation) -> Awaitable[None] | None:
        if operation.obj is None or operation.subresource not in ("", _EPHEMERAL_CONTAINERS):
            return None
        return self._judge(operation, review_spec(operation.obj, operation))

    async def _judge(self, operation: Operation, spec: Object) -> None:
        key = orjson.dumps(spec)
        status = self._remembered(key)
        if status is None:
            try:
                status = await self._ask(spec)
            except ApiError as error:
                self._failed(operation, error)
                return
            self._remember(key, status)
        for name, value in (status.get("auditAnnotations") or {}).items():
            operation.annotate(f"{_AUDIT}{name}", value)
        if status.get("allowed") is not True:
            raise _refused(operation, _reason_text(status.get("reason")))

    async def _ask(self, spec: Object) -> Object:
        review = {"kind": _KIND, "apiVersion": _API, "metadata": {}, "spec": spec}
        answer = await self._post({**review, "status": {"allowed": False}})
        if answer.get("kind", _KIND) != _KIND:
            raise ApiError(f"the webhook answered with a {answer['kind']}, not with an {_KIND}")
        status = answer.get("status")
        return status if isinstance(status, dict) else {}

    def _failed(self, operation: Operation, error: ApiError) -> None:
        """Admit the pod although the webhook fails, or refuse it."""
        if self._policy.default_allow:
            operation.annotate(f"{_AUDIT}failed-open", "true")
        elif isinstance(error, Forbidden):
            raise error
        else:
            raise _refused(operation, error.message) from error

    def _remembered(self, key: bytes) -> Object | None:
        status, until = self._kept.get(key, ({}, 0.0))
        return status if self._clock() < until else None

    def _remember(self, key: bytes, status: Object) -> None:
        allowed = status.get("allowed") is True
        seconds = self._policy.allow_seconds if allowed else self._policy.deny_seconds
        self._kept[key] = (status, self._clock() + seconds)
        self._kept.move_to_end(key)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)


def review_spec(pod: Object, operation: Operation) -> Object:
    """The ``spec`` of the ImageReview: images, annotations meant for the webhook, namespace."""
    members = ["containers", "initContainers"]
    if operation.subresource == _EPHEMERAL_CONTAINERS:
        members = ["ephemeralContainers"]
    spec, given = pod.get("spec") or {}, pod["metadata"].get("annotations") or {}
    images = [{"image": each["image"]} for name in members for each in spec.get(name) or ()]
    annotations = {key: value for key, value in sorted(given.items()) if _OURS in key}
    found: Object = {"containers": images}
    if annotations:
        found["annotations"] = annotations
    return {**found, "namespace": operation.target.namespace}


def _reason_text(reason: Any) -> str:
    if reason and isinstance(reason, str):
        return f"image policy webhook backend denied one or more images: {reason}"
    return "one or more images rejected by webhook backend"


def _refused(operation: Operation, why: str) -> ApiError:
    name = operation.name or (operation.obj or {}).get("metadata", {}).get("name", "")
    return forbidden("", "pods", name, why)
