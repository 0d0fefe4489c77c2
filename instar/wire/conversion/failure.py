"""The error of a failed conversion: upstream's message, with details for debugging.

Raised by the converters of this package. ``message`` is kube-apiserver's text, because clients
match on it. CRD, versions, objects, webhook and advice are in ``details.causes``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from instar.base.errors import ApiError
from instar.base.fast_dataclass import dataclass
from instar.kube.api.crd import Crd

MOST_OBJECTS_NAMED = 10
Objects = Sequence[Mapping[str, Any]]


class FailureType(StrEnum):
    """Upstream's label values; empty where upstream counts nothing."""

    NONE = ""
    CALL = "conversion_webhook_call_failure"
    MALFORMED = "conversion_webhook_malformed_response_failure"
    PARTIAL = "conversion_webhook_partial_response_failure"
    INVALID_OBJECT = "conversion_webhook_invalid_converted_object_failure"


class ConversionFailed(ApiError):
    """500 with a bare message, as upstream answers every conversion error."""

    retryable = True

    def __init__(
        self,
        message: str,
        *,
        failure_type: FailureType = FailureType.NONE,
        timed_out: bool = False,
        unreachable: bool = False,
        details: dict[str, Any] | None = None,
        retold: Callable[[Objects], ConversionFailed] | None = None,
    ) -> None:
        super().__init__(message, details=details)
        self.failure_type = failure_type
        self.timed_out = timed_out
        self.unreachable = unreachable
        self._retold = retold

    def about(self, objects: Objects) -> ConversionFailed:
        """Return a copy that names only the given objects, for one of several callers."""
        return self if self._retold is None else self._retold(objects)


@dataclass(frozen=True, slots=True)
class Attempt:
    """CRD, version, objects and webhook of an attempted conversion, for its error."""

    crd: Crd
    api_version: str
    objects: Objects
    webhook: str = ""

    def failed(
        self,
        message: str,
        failure_type: FailureType,
        cause: str,
        *,
        advice: str = "",
        timed_out: bool = False,
        unreachable: bool = False,
    ) -> ConversionFailed:
        def failure_of(attempt: Attempt) -> ConversionFailed:
            return ConversionFailed(
                message,
                failure_type=failure_type,
                timed_out=timed_out,
                unreachable=unreachable,
                details=attempt._details(cause, advice),
                retold=lambda objects: failure_of(replace(self, objects=objects)),
            )

        return failure_of(self)

    def _details(self, cause: str, advice: str) -> dict[str, Any]:
        details: dict[str, Any] = {"group": self.crd.group, "kind": self.crd.names.plural}
        if len(self.objects) == 1:
            name = _metadata(self.objects[0]).get("name")
            details = {"name": name, **details} if name else details
        sources = dict.fromkeys(str(obj.get("apiVersion", "")) for obj in self.objects)
        causes = [
            ("CustomResourceDefinition", self.crd.name),
            *(("FromVersion", source) for source in sources),
            ("ToVersion", self.api_version),
            *(("Object", name) for name in object_names(self.objects)),
            ("Webhook", self.webhook),
            ("Cause", cause),
            ("Advice", advice),
        ]
        details["causes"] = [{"reason": reason, "message": text} for reason, text in causes if text]
        return details


def object_names(objects: Objects) -> list[str]:
    """Return ``namespace/name`` of the first few objects, then the number of remaining ones."""
    names = [_object_name(obj) for obj in objects[:MOST_OBJECTS_NAMED]]
    left = len(objects) - MOST_OBJECTS_NAMED
    return [*names, f"and {left} more"] if left > 0 else names


def _object_name(obj: Mapping[str, Any]) -> str:
    metadata = _metadata(obj)
    name = metadata.get("name") or metadata.get("generateName") or ""
    namespace = metadata.get("namespace")
    return f"{namespace}/{name}" if namespace else str(name)


def _metadata(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}
