"""Webhook conversion strategy: sends objects to a CRD's webhook as ConversionReviews.

Created by ``factory.py``. Only objects at another version are sent, in one call per batch (split
where it would grow too large), and returned in the given order. ``wire/webhooks/transport.py`` does
HTTP; ``contract.py`` checks answers.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.api import conversion_review
from instar.kube.api.crd import Crd
from instar.kube.api.encoding.json_text import encode_sorted
from instar.wire.conversion import contract
from instar.wire.conversion.converter import ObjectWithJson
from instar.wire.conversion.failure import Attempt, ConversionFailed, FailureType
from instar.wire.webhooks.failure import CallFailed
from instar.wire.webhooks.transport import DEFAULT_TIMEOUT, Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """Limits of one ConversionReview; a larger single object is sent alone."""

    most_objects: int = 1000
    most_bytes: int = 4 * 1024 * 1024
    calls_at_once: int = 4
    """Limit per ``convert`` call."""


class WebhookConverter:
    """A ``VersionConverter`` that calls the webhook of one CRD."""

    def __init__(
        self,
        crd: Crd,
        transport: Transport,
        *,
        limits: BatchLimits | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self._crd = crd
        self._transport = transport
        self._limits = limits or BatchLimits()
        self._timeout = timeout
        self._review_version = conversion_review.preferred_version(crd.conversion.review_versions)

    @property
    def address(self) -> str:
        return self._transport.address

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        result = list(objects)
        positions = []
        for position, obj in enumerate(objects):
            if obj.get("apiVersion") == api_version:
                continue
            if _is_bare(obj):
                result[position] = {**obj, "apiVersion": api_version}
            else:
                positions.append(position)
        if positions:
            converted = await self._converted([objects[at] for at in positions], api_version)
            for position, obj in zip(positions, converted, strict=True):
                result[position] = obj
        return result

    async def _converted(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        if self._review_version is None:
            text = "no supported conversion review versions"
            raise self._attempt(objects, api_version).failed(text, FailureType.NONE, text)
        encoded = [
            obj.json if isinstance(obj, ObjectWithJson) else encode_sorted(obj) for obj in objects
        ]
        parts = list(self._parts(encoded))
        if len(parts) == 1:
            return await self._request_conversion(objects, encoded, api_version)
        results: dict[int, list[Object]] = {}
        left = iter(enumerate(parts))

        async def work_through() -> None:
            for number, part in left:
                results[number] = await self._request_conversion(
                    objects[part], encoded[part], api_version
                )

        await _all_or_none([work_through() for _ in range(self._limits.calls_at_once)])
        return [obj for number in range(len(parts)) for obj in results[number]]

    def _parts(self, encoded: Sequence[bytes]) -> Iterator[slice]:
        start, size = 0, 0
        for position, item in enumerate(encoded):
            full = position - start >= self._limits.most_objects
            if position > start and (full or size + len(item) > self._limits.most_bytes):
                yield slice(start, position)
                start, size = position, 0
            size += len(item)
        yield slice(start, len(encoded))

    async def _request_conversion(
        self, objects: Sequence[Object], encoded: Sequence[bytes], api_version: str
    ) -> list[Object]:
        """Send one ConversionReview and check its answer."""
        version = self._review_version or ""
        sent = conversion_review.ConversionRequest(version, str(uuid.uuid4()), api_version, objects)
        body = conversion_review.encode_request(version, sent.uid, api_version, encoded)
        try:
            answer = await self._transport.post(body, seconds=self._timeout)
            received = conversion_review.parse_response(answer)
        except (CallFailed, conversion_review.InvalidConversionReview) as error:
            raise self._call_failed(objects, api_version, error) from error
        try:
            return contract.accept_all(objects, contract.check_answer(sent, received), api_version)
        except contract.BrokenContract as broken:
            raise self._refusal(objects, api_version, broken) from broken

    def _call_failed(
        self, objects: Sequence[Object], api_version: str, error: CallFailed | ValueError
    ) -> ConversionFailed:
        known = error if isinstance(error, CallFailed) else CallFailed(str(error))
        return self._attempt(objects, api_version).failed(
            f"conversion webhook for {contract.source_of(objects[0])} failed: {known.text}",
            FailureType.CALL,
            known.text,
            advice=known.advice or "the webhook must answer with a ConversionReview in JSON",
            timed_out=known.timed_out,
            unreachable=known.unreachable,
        )

    def _refusal(
        self, objects: Sequence[Object], api_version: str, broken: contract.BrokenContract
    ) -> ConversionFailed:
        guilty = objects if broken.index < 0 else [objects[broken.index]]
        sentence = broken.sentence(contract.source_of(guilty[0]), batch=len(objects) > 1)
        return self._attempt(guilty, api_version).failed(
            sentence, broken.stage.failure_type, broken.text
        )

    def _attempt(self, objects: Sequence[Object], api_version: str) -> Attempt:
        return Attempt(self._crd, api_version, objects, self._transport.address)


def _is_bare(obj: Object) -> bool:
    return len(obj) == 2 and "apiVersion" in obj and "kind" in obj


async def _all_or_none(workers: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all workers; the first failure cancels the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for worker in workers:
                group.create_task(worker)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures
