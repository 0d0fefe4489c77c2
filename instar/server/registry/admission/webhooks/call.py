"""Calls one admission webhook for one operation: match conditions, request, answer, failures.

Used by ``mutating.py`` and ``validating.py``; ``wire/webhooks/transport.py`` does the HTTP call.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import orjson

from instar.base import errors, offload
from instar.base.errors import ApiError, TooManyRequests
from instar.base.fast_dataclass import dataclass
from instar.kube.admission.match_rules import RequestEndpoint
from instar.kube.admission.webhook_configurations import WebhookConfiguration
from instar.kube.admission.webhook_response import BadAnswer, Denied, WebhookVerdict, verdict_of
from instar.kube.api.admission_review import (
    InvalidAdmissionReview,
    encode_admission_request,
    parse_answer,
)
from instar.kube.api.encoding.json_text import encode_sorted
from instar.kube.api.string_rules import qualified_name
from instar.server.registry.admission.request_view import ObjectPair, RequestView, refused_name
from instar.server.registry.admission.webhooks.configured import ConfiguredWebhook
from instar.server.registry.admission.webhooks.in_process_call import LocalFailed, LocalReviews
from instar.server.registry.admission.webhooks.metrics import AdmissionWebhookMetrics
from instar.server.registry.resources.admission import Operation
from instar.wire.webhooks.call_log import CallLog, Failure, WebhookCall
from instar.wire.webhooks.failure import CallFailed
from instar.wire.webhooks.transport import TransportPool, webhook_address

log = logging.getLogger(__name__)
_NO_VERSION = (
    "could not create admission objects: webhook does not accept known AdmissionReview versions "
    "(v1, v1beta1)"
)
_UNAVAILABLE, _BAD_REQUEST, _INTERNAL = 503, 400, 500


class WebhookPhase(NamedTuple):
    """Mutating or validating, with upstream's names for it."""

    mutating: bool
    label: str
    step: str
    opened: str
    """Audit annotation key for an ignored failure."""


ADMIT = WebhookPhase(True, "admit", "admit", "failed-open.mutation.webhook.admission.k8s.io")
VALIDATE = WebhookPhase(
    False, "validating", "validate", "failed-open.validating.webhook.admission.k8s.io"
)


class WebhookFailed(errors.Internal):
    """A webhook could not be called or gave no valid answer; ``failurePolicy`` decides."""

    def __init__(
        self, webhook: WebhookConfiguration, why: str, code: int, advice: str = ""
    ) -> None:
        super().__init__(f'failed calling webhook "{webhook.name}": {why}')
        self.call_code = code
        if advice and self.details is not None:
            self.details["causes"].append({"reason": "Advice", "message": advice})


_NO_TIME = 0.02
"""Below this many remaining seconds the request itself counts as timed out."""
_TOO_LATE = "request did not complete within requested timeout - context deadline exceeded"


class WebhookRequest(NamedTuple):
    """The operation at a version, encoded once for all webhooks that see it there."""

    endpoint: RequestEndpoint
    obj: bytes | None
    old: bytes | None


@dataclass(frozen=True, slots=True)
class WebhookCaller:
    """Shared state of the calls of all webhooks."""

    transports: TransportPool
    metrics: AdmissionWebhookMetrics
    calls: CallLog
    local: LocalReviews
    new_uid: Callable[[], str]

    async def conditions_hold(
        self,
        phase: WebhookPhase,
        webhook: WebhookConfiguration,
        subject: RequestView,
        endpoint: RequestEndpoint,
        pair: ObjectPair,
    ) -> bool:
        """Return whether the match conditions hold. Raises 403 if they fail to evaluate and the
        failure policy is Fail."""
        operation = subject.operation
        labels = (webhook.name, "webhook", phase.step, operation.verb.value)
        began = perf_counter()
        matched = await webhook.conditions.matched(subject.values(endpoint, pair))
        self.metrics.condition_seconds.observe(labels, perf_counter() - began)
        if matched.errors:
            self.metrics.condition_errors.add(labels)
        if matched.errors and not webhook.ignores_failures:
            raise _condition_failure(operation, matched.text)
        if not matched.holds:
            self.metrics.condition_exclusions.add(labels)
        return matched.holds

    async def ask(
        self,
        phase: WebhookPhase,
        hook: ConfiguredWebhook,
        subject: RequestView,
        question: WebhookRequest,
        index: int,
    ) -> WebhookVerdict | None:
        """Return the webhook's verdict; None for a failure that is ignored. Raises the error to
        answer the request with."""
        webhook, operation = hook.webhook, subject.operation
        if operation.dry_run and not webhook.dry_runs:
            text = f'admission webhook "{webhook.name}" does not support dry run'
            raise errors.BadRequest(text)
        began = perf_counter()
        try:
            verdict = await self._call(phase, hook, subject, question)
        except (WebhookFailed, TooManyRequests) as error:
            code = error.call_code if isinstance(error, WebhookFailed) else error.code
            rejected = not webhook.ignores_failures
            self._count(phase, webhook, operation, began, code, rejected=rejected)
            self._note(phase, hook, began, error)
            if rejected:
                self._count_rejection(phase, webhook, operation, "calling_webhook_error", code)
                raise
            if operation.seconds_left() < _NO_TIME:
                # The request's own deadline has passed: do not store it without a client.
                raise errors.Timeout(_TOO_LATE) from error
            log.warning(
                "admission webhook failed and failurePolicy is Ignore, continuing: %s", error
            )
            self.metrics.failed_open.add((webhook.name, phase.label))
            key = f"{phase.opened}/round_{operation.round}_index_{index}"
            operation.annotate(key, webhook.name)
            return None
        self._note(phase, hook, began, None)
        self._add_warnings_and_annotations(webhook, operation, verdict)
        if verdict.allowed:
            self._count(phase, webhook, operation, began, 200, rejected=False)
            return verdict
        denied = Denied(webhook.name, verdict.status)
        self._count(phase, webhook, operation, began, denied.code, rejected=True)
        self._count_rejection(phase, webhook, operation, "no_error", denied.code)
        raise denied

    async def _call(
        self,
        phase: WebhookPhase,
        hook: ConfiguredWebhook,
        subject: RequestView,
        question: WebhookRequest,
    ) -> WebhookVerdict:
        webhook = hook.webhook
        if webhook.version is None:
            raise WebhookFailed(webhook, _NO_VERSION, _BAD_REQUEST)
        uid = self.new_uid()
        document = subject.request(question.endpoint)
        body = encode_admission_request(webhook.version, uid, document, question.obj, question.old)
        # asyncio deadlines need a task of their own.
        answer = await asyncio.create_task(self._answer(hook, body, subject.operation))
        version, mutating = webhook.version, phase.mutating
        try:
            return await offload.run(
                len(answer),
                lambda: verdict_of(parse_answer(answer, version), version, uid, mutating=mutating),
            )
        except InvalidAdmissionReview as error:
            advice = "the webhook must answer with an AdmissionReview in JSON"
            why = f"failed to call webhook: {error}"
            raise WebhookFailed(webhook, why, _UNAVAILABLE, advice) from error
        except BadAnswer as error:
            raise WebhookFailed(webhook, str(error), _UNAVAILABLE) from error

    async def _answer(self, hook: ConfiguredWebhook, body: bytes, operation: Operation) -> bytes:
        webhook = hook.webhook
        seconds = min(webhook.seconds, operation.seconds_left())
        if hook.review is not None:
            try:
                return await self.local.ask(webhook.name, hook.review, body, seconds)
            except LocalFailed as error:
                raise WebhookFailed(webhook, str(error), _UNAVAILABLE, error.advice) from error
        if webhook.blank_bundle:
            raise _unusable(webhook, "unable to parse bytes as PEM block")
        transport = self.transports.transport_for(webhook.client)
        try:
            return await transport.post(body, seconds=seconds, told=math.ceil(seconds))
        except CallFailed as error:
            if error.misconfigured:
                why = f"could not get REST client: {error.text}"
                raise WebhookFailed(webhook, why, _INTERNAL, error.advice) from error
            why = f"failed to call webhook: {error.text}"
            raise WebhookFailed(webhook, why, error.code, error.advice) from error

    def _add_warnings_and_annotations(
        self, webhook: WebhookConfiguration, operation: Operation, verdict: WebhookVerdict
    ) -> None:
        for text in verdict.warnings:
            operation.warn(text)
        for key, value in verdict.annotations.items():
            named = f"{webhook.name}/{key}"
            if not qualified_name(named):
                operation.annotate(named, value)

    def _count(
        self,
        phase: WebhookPhase,
        webhook: WebhookConfiguration,
        operation: Operation,
        began: float,
        code: int,
        *,
        rejected: bool,
    ) -> None:
        took, verb = perf_counter() - began, operation.verb.value
        self.metrics.called(webhook.name, phase.label, verb, took, code, rejected=rejected)

    def _note(
        self, phase: WebhookPhase, hook: ConfiguredWebhook, began: float, error: ApiError | None
    ) -> None:
        """Record a call; a rejection is an answer, so only a failed call counts as failed."""
        webhook = hook.webhook
        called = WebhookCall(
            "mutating" if phase.mutating else "validating", webhook.configuration, webhook.name
        )
        where = "in process" if hook.review is not None else webhook_address(webhook.client)
        failure = None if error is None else Failure("call", error.message)
        self.calls.note(called, where, perf_counter() - began, failure)

    def _count_rejection(
        self,
        phase: WebhookPhase,
        webhook: WebhookConfiguration,
        operation: Operation,
        error_type: str,
        code: int,
    ) -> None:
        verb = operation.verb.value
        self.metrics.rejected(webhook.name, phase.label, verb, error_type, code)


def _unusable(webhook: WebhookConfiguration, text: str) -> WebhookFailed:
    why = f"could not get REST client: unable to load root certificates: {text}"
    advice = "clientConfig.caBundle must be base64 of PEM certificates"
    return WebhookFailed(webhook, why, _INTERNAL, advice)


def _condition_failure(operation: Operation, why: str) -> errors.Forbidden:
    serving = operation.target.serving
    return errors.forbidden(serving.group, serving.plural, refused_name(operation), why)


def conversion_failure(error: ApiError, times: int) -> ApiError:
    """Wrap a conversion error as upstream does, once for each layer it passes."""
    if isinstance(error, TooManyRequests):
        return error
    wrapped = errors.Internal(error.message)
    for _ in range(times - 1):
        wrapped = errors.Internal(wrapped.message)
    if error.details and wrapped.details is not None:
        wrapped.details["causes"] += error.details.get("causes") or []
    return wrapped


async def all_done(calls: list[asyncio.Task[None]]) -> None:
    """Wait for every call, including those with an irrelevant outcome; cancel them when
    cancelled."""
    try:
        await asyncio.wait(calls)
    except asyncio.CancelledError:
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        raise


async def encoded(pair: ObjectPair, size: int) -> tuple[bytes | None, bytes | None]:
    """Encode both objects for webhooks."""

    def work() -> tuple[bytes | None, bytes | None]:
        new = None if pair.obj is None else encode_sorted(pair.obj)
        return new, None if pair.old is None else encode_sorted(pair.old)

    return await offload.run(size, work)


def as_json(value: object) -> str:
    return orjson.dumps(value).decode()
