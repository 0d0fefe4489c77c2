"""Mutating webhooks: called in sequence, each with the object as the previous one left it.

Part of the admission chain (``server/lifecycle/admission_setup.py``). Each webhook gets the object
at the version it matches, and its patched object gets that version's defaults. A second round
reinvokes webhooks with ``IfNeeded`` after changes by others.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from instar.base import errors, offload
from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.base.limits import MAX_BODY
from instar.kube.admission.match_rules import RequestEndpoint
from instar.kube.admission.webhook_configurations import WebhookConfiguration
from instar.kube.api.encoding.json_text import decode, encode, encode_sorted
from instar.kube.patches.json_patch import PatchFailed, json_patch
from instar.server.registry.admission.request_view import ObjectPair, RequestView, RequestViews
from instar.server.registry.admission.webhooks.call import (
    ADMIT,
    WebhookCaller,
    WebhookRequest,
    as_json,
    conversion_failure,
    encoded,
)
from instar.server.registry.admission.webhooks.configured import ConfiguredWebhook, Hooks, is_exempt
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving

_NAME = "MutatingAdmissionWebhook"
_WORK_OF_AN_OPERATION = 64
"""Cost of one patch operation in bytes, for deciding whether to run in a thread."""


class MutatingWebhooks:
    def __init__(self, hooks: Hooks, subjects: RequestViews, caller: WebhookCaller) -> None:
        self._hooks = hooks
        self._subjects = subjects
        self._caller = caller

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        return PluginPhases.ADMIT

    async def admit(self, operation: Operation) -> None:
        if not self._hooks or is_exempt(operation):
            return
        began, rejected = perf_counter(), "true"
        try:
            await self._round(operation)
            rejected = "false"
        finally:
            labels = (_NAME, "admit", operation.verb.value, rejected)
            seconds = self._caller.metrics.controller_seconds
            seconds.observe(labels, perf_counter() - began)

    def validate(self, operation: Operation) -> None:
        return

    async def _round(self, operation: Operation) -> None:
        subject = self._subjects.of(operation, validating=False)
        memory = operation.notes.get(self)
        if not isinstance(memory, _Memory):
            memory = operation.notes[self] = _Memory()
        if operation.round:
            memory.begin_second_round(operation)
        journey = _Journey(subject)
        breaks = offload.Breaks()
        for index, hook in enumerate(self._hooks.all()):
            await breaks.between()
            if operation.round and hook.webhook not in memory.reinvoked:
                continue
            asked, changed = await self._one(journey, hook, index)
            if changed:
                memory.mark_changed()
                operation.again = True
            if asked and hook.webhook.reinvoked:
                memory.invoked.append(hook.webhook)
        await journey.home()
        memory.ended(operation)

    async def _one(
        self, journey: _Journey, hook: ConfiguredWebhook, index: int
    ) -> tuple[bool, bool]:
        """Call the webhook if it matches; return whether it was called and changed the object."""
        webhook, subject = hook.webhook, journey.subject
        endpoint = await subject.means(webhook.criteria, journey.obj)
        if endpoint is None:
            return False, False
        operation = subject.operation
        try:
            pair = ObjectPair(await journey.at(endpoint), await subject.old_at(endpoint))
        except ApiError as error:
            raise conversion_failure(error, 2) from error
        if webhook.conditions and not await self._caller.conditions_hold(
            ADMIT, webhook, subject, endpoint, pair
        ):
            return False, False
        question = WebhookRequest(endpoint, *await encoded(pair, operation.size))
        verdict = await self._caller.ask(ADMIT, hook, subject, question, index)
        if verdict is None:
            return True, False
        changed = False
        if verdict.patch:
            changed = await self._patched(journey, webhook.name, endpoint, question, verdict.patch)
        self._note(operation, hook, index, changed, list(verdict.patch))
        return True, changed

    async def _patched(
        self,
        journey: _Journey,
        name: str,
        endpoint: RequestEndpoint,
        question: WebhookRequest,
        patch: Sequence[Object],
    ) -> bool:
        if question.obj is None:
            raise errors.Internal(
                f'admission webhook "{name}" attempted to modify the object, which is not '
                "supported for this operation"
            )
        before, operation = question.obj, journey.subject.operation
        size = len(before) + len(patch) * _WORK_OF_AN_OPERATION

        def work() -> tuple[Object, bytes]:
            made = _apply(before, patch)
            journey.readmit(made, endpoint)
            return made, encode_sorted(made)

        made, text = await offload.run(size, work)
        if text == before:
            return False
        operation.size = max(operation.size, len(text))
        journey.become(endpoint, made)
        return True

    def _note(
        self,
        operation: Operation,
        hook: ConfiguredWebhook,
        index: int,
        changed: bool,
        patch: list[Object],
    ) -> None:
        place = f"webhook.admission.k8s.io/round_{operation.round}_index_{index}"
        source = {"configuration": hook.webhook.configuration, "webhook": hook.webhook.name}
        operation.annotate(f"mutation.{place}", as_json({**source, "mutated": changed}))
        if changed:
            applied = {**source, "patch": patch, "patchType": "JSONPatch"}
            operation.annotate(f"patch.{place}", as_json(applied))


class _Memory:
    """State that the first round leaves to the second."""

    def __init__(self) -> None:
        self.invoked: list[WebhookConfiguration] = []
        """Webhooks with ``IfNeeded`` that have not seen later changes yet."""
        self.reinvoked: list[WebhookConfiguration] = []
        self._left: bytes | None = None

    def mark_changed(self) -> None:
        self.reinvoked += self.invoked
        self.invoked = []

    def begin_second_round(self, operation: Operation) -> None:
        """Begin the second round; earlier plugins may have changed the object in the meantime."""
        if self._left is not None and self._left != _encoded(operation.obj):
            self.mark_changed()

    def ended(self, operation: Operation) -> None:
        self._left = _encoded(operation.obj) if self.invoked else None


class _Journey:
    """The object on its way from webhook to webhook."""

    def __init__(self, subject: RequestView) -> None:
        self.subject = subject
        self._home = subject.asked.endpoint
        self._endpoint = self._home
        self.obj = subject.operation.obj
        self._views: dict[str, Object | None] = {self._home.api_version: self.obj}

    async def at(self, endpoint: RequestEndpoint) -> Object | None:
        """Convert to another version by way of the request's own, as upstream does."""
        if self.obj is None:
            return None
        key = endpoint.api_version
        if key not in self._views:
            if self._home.api_version not in self._views:
                back = await self.subject.converted(self.obj, self._endpoint, self._home)
                self._views[self._home.api_version] = back
            at_home = self._views[self._home.api_version]
            assert at_home is not None
            self._views[key] = await self.subject.converted(at_home, self._home, endpoint)
        return self._views[key]

    def become(self, endpoint: RequestEndpoint, obj: Object) -> None:
        self.obj, self._endpoint = obj, endpoint
        self._views = {endpoint.api_version: obj}

    def readmit(self, obj: Object, endpoint: RequestEndpoint) -> None:
        """Prune and default a patched object, in place."""
        operation = self.subject.operation
        if operation.kind is not None:
            return
        serving = operation.target.serving
        try:
            serving.strategy.readmit(obj, serving.version_at(endpoint.api_version))
        except errors.BadRequest as error:
            raise errors.Internal(error.message) from error

    async def home(self) -> None:
        operation = self.subject.operation
        if operation.obj is None or self.obj is operation.obj or self.obj is None:
            return
        try:
            final = await self.at(self._home)
        except ApiError as error:
            raise conversion_failure(error, 2) from error
        assert final is not None
        operation.obj.clear()
        operation.obj.update(final)
        operation.changed = True


def _apply(before: bytes, patch: Sequence[Object]) -> Object:
    try:
        text = encode(json_patch(decode(before), list(patch)))
        made = decode(text) if len(text) <= MAX_BODY else None
    except PatchFailed as error:
        raise errors.Internal(str(error)) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.Internal(f"the patched object cannot be written: {error}") from error
    if made is None:
        raise errors.Internal(f"the patched object is larger than {MAX_BODY} bytes")
    if not isinstance(made, dict):
        raise errors.Internal("the patched document is no object")
    return made


def _encoded(obj: Object | None) -> bytes | None:
    return None if obj is None else encode_sorted(obj)
