from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.errors import BadRequest
from instar.sdk import Converter, ConverterDefinitionError, split
from instar.tools.sdk.conversion_reviews import ConversionReviewHandler

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
OBJECTS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from(["g/v1", "g/v2", "g/v3", "x/y/z", ""]) | JSON,
        "kind": st.just("Widget") | JSON,
        "metadata": st.fixed_dictionaries({}, optional={"annotations": JSON, "name": JSON}) | JSON,
        "hostPort": st.just("a:1") | JSON,
        "host": JSON,
        "port": JSON,
    },
)
REVIEWS = st.fixed_dictionaries(
    {"kind": st.just("ConversionReview"), "apiVersion": st.just("apiextensions.k8s.io/v1")},
    optional={
        "request": JSON
        | st.fixed_dictionaries(
            {},
            optional={
                "uid": st.just("u") | JSON,
                "desiredAPIVersion": st.sampled_from(["g/v1", "g/v2", "g/v9", "g"]) | JSON,
                "objects": st.lists(OBJECTS, max_size=3) | JSON,
            },
        )
    },
)


def _handler() -> ConversionReviewHandler:
    widget = Converter("Widget", group="g")
    widget.between("v1", "v2", rules=[split("hostPort", "{host}:{port:int}")])
    return ConversionReviewHandler([widget.build()])


@given(REVIEWS | JSON)
def test_any_body_is_answered_or_refused(review: Any) -> None:
    try:
        answer = _handler().answer(orjson.dumps(review))
    except BadRequest:
        return

    response = orjson.loads(answer.body)["response"]
    assert response["uid"] == review["request"]["uid"]
    if answer.succeeded:
        assert len(response["convertedObjects"]) == len(review["request"].get("objects") or [])
    else:
        assert response["result"]["message"]


@given(st.binary(max_size=20))
def test_bytes_that_are_no_json_are_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        _handler().answer(body)


def test_an_empty_review_succeeds() -> None:
    request = {"uid": "u", "desiredAPIVersion": "g/v1", "objects": []}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}

    answer = _handler().answer(orjson.dumps({**review, "request": request}))

    assert answer.succeeded


def test_two_converters_for_one_kind_are_refused() -> None:
    widget = Converter("Widget", group="g")
    widget.between("v1", "v2", rules=[])

    with pytest.raises(ConverterDefinitionError, match="same kind"):
        ConversionReviewHandler([widget.build(), widget.build()])
