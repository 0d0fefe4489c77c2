"""Answers ConversionReview requests with a converter: bytes in, bytes out.

``asgi.py`` calls it for each HTTP request. A readable ConversionReview is always answered with a
ConversionReview, which reports success or failure; any other body raises ``ApiError``, because
there is no uid to answer to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from instar.base.errors import BadRequest
from instar.kube.api import conversion_review
from instar.kube.api.conversion_review import ConversionRequest
from instar.tools.sdk.converter import BuiltConverter
from instar.tools.sdk.errors import ConversionError, ConverterDefinitionError


class ConversionAnswer(NamedTuple):
    """The response and its metric labels. ``kind``, ``source`` and ``target`` are names that the
    converters define, else empty, so that a request cannot create new label values.
    """

    body: bytes
    succeeded: bool
    objects: int
    kind: str = ""
    source: str = ""
    target: str = ""
    error: str = ""


class ConversionReviewHandler:
    """Answers for any number of kinds; the objects of one ConversionReview have one kind."""

    def __init__(self, converters: Sequence[BuiltConverter]) -> None:
        self._converters = {(each.group, each.kind): each for each in converters}
        if len(self._converters) != len(converters):
            raise ConverterDefinitionError("two converters are for the same kind")

    def answer(self, body: bytes) -> ConversionAnswer:
        try:
            request = conversion_review.parse_request(body)
        except conversion_review.InvalidConversionReview as error:
            raise BadRequest(str(error)) from None
        if not request.uid:
            raise BadRequest("the review's request has no uid")
        labels = ("", "", "")
        try:
            converter = self._converter_for(request)
            # Before converting: that changes the objects in place.
            labels = _labels(converter, request)
            objects = converter.convert_owned(request.objects, request.desired_api_version)
        except ConversionError as error:
            failure = conversion_review.encode_failure(request.version, request.uid, str(error))
            return ConversionAnswer(failure, False, len(request.objects), *labels, str(error))
        encoded = conversion_review.encode_success(request.version, request.uid, objects)
        return ConversionAnswer(encoded, True, len(objects), *labels)

    def _converter_for(self, request: ConversionRequest) -> BuiltConverter:
        group = request.desired_api_version.rpartition("/")[0]
        kind = _first_kind(request.objects)
        found = self._converters.get((group, kind))
        if found is None and not request.objects:
            known = [each for (of, _), each in self._converters.items() if of == group]
            found = known[0] if known else None
        if found is None:
            served = ", ".join(f"{name}.{of}" for of, name in self._converters)
            wanted = f"{kind or '(no kind)'}.{group or '(no group)'}"
            raise ConversionError(f"this webhook converts {served}, not {wanted}")
        return found


def _first_kind(objects: Sequence[Any]) -> str:
    first = objects[0] if objects else None
    kind = first.get("kind") if isinstance(first, dict) else None
    return kind if isinstance(kind, str) else ""


def _labels(converter: BuiltConverter, request: ConversionRequest) -> tuple[str, str, str]:
    first = request.objects[0] if request.objects else None
    source = first.get("apiVersion") if isinstance(first, dict) else None
    target = _known(converter, request.desired_api_version)
    return converter.kind, _known(converter, source), target


def _known(converter: BuiltConverter, api_version: Any) -> str:
    version = str(api_version).rpartition("/")[2]
    return version if version in converter.versions else ""
