"""Validating webhooks: all matching webhooks are called concurrently, and one rejection rejects the
request.

Part of the admission chain (``server/lifecycle/admission_setup.py``), after validation of the
object.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import NamedTuple

from instar.base import offload
from instar.base.errors import ApiError
from instar.kube.admission.match_rules import RequestEndpoint
from instar.server.registry.admission.request_view import ObjectPair, RequestView, RequestViews
from instar.server.registry.admission.webhooks.call import (
    VALIDATE,
    WebhookCaller,
    WebhookRequest,
    all_done,
    conversion_failure,
    encoded,
)
from instar.server.registry.admission.webhooks.configured import ConfiguredWebhook, Hooks, is_exempt
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving

_NAME = "ValidatingAdmissionWebhook"


class _Call(NamedTuple):
    hook: ConfiguredWebhook
    question: WebhookRequest


class ValidatingWebhooks:
    def __init__(self, hooks: Hooks, subjects: RequestViews, caller: WebhookCaller) -> None:
        self._hooks = hooks
        self._subjects = subjects
        self._caller = caller

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return PluginPhases.VALIDATE

    def admit(self, operation: Operation) -> None:
        return

    async def validate(self, operation: Operation) -> None:
        if not self._hooks or is_exempt(operation):
            return
        began, rejected = perf_counter(), "true"
        operation.round = 0
        try:
            subject = self._subjects.of(operation, validating=True)
            await self._ask(subject, await self._calls(subject))
            rejected = "false"
        finally:
            labels = (_NAME, "validate", operation.verb.value, rejected)
            seconds = self._caller.metrics.controller_seconds
            seconds.observe(labels, perf_counter() - began)

    async def _calls(self, subject: RequestView) -> list[_Call]:
        """Return the webhooks to call; all conversions happen before the first call."""
        calls: list[_Call] = []
        questions: dict[str, WebhookRequest] = {}
        breaks = offload.Breaks()
        for hook in self._hooks.all():
            await breaks.between()
            webhook = hook.webhook
            endpoint = await subject.means(webhook.criteria)
            if endpoint is None:
                continue
            pair = await _objects_at(subject, endpoint)
            if webhook.conditions and not await self._caller.conditions_hold(
                VALIDATE, webhook, subject, endpoint, pair
            ):
                continue
            question = questions.get(endpoint.api_version)
            if question is None:
                question = WebhookRequest(endpoint, *await encoded(pair, subject.operation.size))
                questions[endpoint.api_version] = question
            calls.append(_Call(hook, question))
        return calls

    async def _ask(self, subject: RequestView, calls: list[_Call]) -> None:
        """Wait for all calls; raise the error of the first that failed."""
        if len(calls) == 1:
            hook, question = calls[0]
            await self._caller.ask(VALIDATE, hook, subject, question, 0)
            return
        if not calls:
            return
        refusals: list[Exception] = []

        async def one(index: int, call: _Call) -> None:
            try:
                await self._caller.ask(VALIDATE, call.hook, subject, call.question, index)
            except Exception as error:
                refusals.append(error)

        loop = asyncio.get_running_loop()
        await all_done([loop.create_task(one(at, call)) for at, call in enumerate(calls)])
        if refusals:
            raise refusals[0]


async def _objects_at(subject: RequestView, endpoint: RequestEndpoint) -> ObjectPair:
    try:
        return await subject.at(endpoint)
    except ApiError as error:
        raise conversion_failure(error, 1) from error
