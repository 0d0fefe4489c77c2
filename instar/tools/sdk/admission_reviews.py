"""Answers AdmissionReview requests with the author's handlers: bytes in, bytes out.

``asgi.py`` calls it for each HTTP request, ``instar serve --admission-module`` in process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import orjson

from instar.base.errors import BadRequest, Internal
from instar.base.json_values import Object
from instar.kube.api.admission_review import (
    InvalidAdmissionReview,
    ParsedAdmissionRequest,
    encode_answer,
    parse_admission_request,
)
from instar.kube.patches.difference import patch_between
from instar.tools.sdk.admission import Admission, AdmissionHandler, path_of
from instar.tools.sdk.errors import ConverterDefinitionError


class AdmissionReviewHandler:
    """Answers for any number of admissions; each webhook has its own path."""

    def __init__(self, admissions: Sequence[Admission]) -> None:
        listed = [each for admission in admissions for each in admission.handlers]
        self._handlers = {path_of(each.name): each for each in listed}
        if len(self._handlers) != len(listed):
            raise ConverterDefinitionError("two handlers have the same name")

    def knows(self, path: str) -> bool:
        return path in self._handlers

    def answer(self, path: str, body: bytes) -> bytes:
        """Return the response. Raises ``BadRequest`` if the body is not an AdmissionReview, and
        ``Internal`` if a handler fails; the server then applies the webhook's failurePolicy.
        """
        try:
            question = parse_admission_request(body)
        except InvalidAdmissionReview as error:
            raise BadRequest(str(error)) from None
        handler = self._handlers[path]
        try:
            return answer_review(handler, question)
        except Exception as error:
            raise Internal(f"{handler.name}: {type(error).__name__}: {error}") from error


def review_in_process(admission: Admission) -> Callable[[str, Object], Object]:
    """Return a function for a server in the same process: (name of the webhook, review) →
    review.
    """

    def review(name: str, document: Object) -> Object:
        handler = admission.handler(name)
        assert handler is not None
        version = str(document["apiVersion"]).rpartition("/")[2]
        answer: Object = orjson.loads(
            answer_review(handler, ParsedAdmissionRequest(version, document["request"]))
        )
        return answer

    return review


def answer_review(handler: AdmissionHandler, question: ParsedAdmissionRequest) -> bytes:
    """Return the AdmissionReview response of one handler."""
    request = question.request
    outcome = handler.run(request)
    refusal = outcome.refusal
    if refusal is not None:
        return encode_answer(
            question,
            allowed=False,
            message=refusal.message,
            code=refusal.code,
            reason=refusal.reason,
            warnings=outcome.warnings,
        )
    patch: list[Object] = []
    if outcome.obj is not None:
        patch = patch_between(request.get("object"), outcome.obj)
    return encode_answer(question, allowed=True, patch=patch, warnings=outcome.warnings)
