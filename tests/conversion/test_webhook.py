"""Which objects are sent, in how many reviews, and in which order they come back."""

from __future__ import annotations

import asyncio
import copy

import pytest

from instar.base.json_values import Object
from instar.wire.conversion.factory import converter_for
from instar.wire.conversion.webhook import BatchLimits
from tests.conversion.helpers import (
    V1,
    V2,
    convert,
    crd_with,
    run,
    services,
    widget,
    widgets,
)
from tests.support.webhook import Webhook


def renamed(obj: Object, api_version: str) -> Object:
    """spec.size (v1) <-> spec.length (v2)."""
    old, new = ("size", "length") if api_version == V2 else ("length", "size")
    return {**obj, "apiVersion": api_version, "spec": {new: obj["spec"][old]}}


def test_a_page_of_objects_is_one_review(hook: Webhook) -> None:
    hook.convert = renamed

    converted = convert(hook.conversion(), widgets(500))

    assert (hook.reviews, hook.objects) == (1, 500)
    assert [obj["metadata"]["name"] for obj in converted] == [f"w{n}" for n in range(500)]
    assert converted[0]["spec"] == {"length": 1}


def test_only_objects_at_another_version_are_sent(hook: Webhook) -> None:
    objects = [widget("a"), widget("b", V2), widget("c", "example.com/v3"), widget("d", V2)]

    converted = convert(hook.conversion(), objects)

    assert hook.objects == 2
    assert [obj["metadata"]["name"] for obj in converted] == ["a", "b", "c", "d"]
    assert {obj["apiVersion"] for obj in converted} == {V2}
    assert converted[1] is objects[1]


@pytest.mark.parametrize("objects", [[], [widget("a", V2), widget("b", V2)]])
def test_an_empty_batch_sends_no_review(hook: Webhook, objects: list[Object]) -> None:
    assert convert(hook.conversion(), objects) == objects
    assert hook.reviews == 0


def test_an_object_of_nothing_but_its_type_is_relabelled_here(hook: Webhook) -> None:
    [converted] = convert(hook.conversion(), [{"apiVersion": V1, "kind": "Widget"}])

    assert converted == {"apiVersion": V2, "kind": "Widget"}
    assert hook.reviews == 0


def test_the_input_is_never_changed(hook: Webhook) -> None:
    objects = [widget("a", labels={"x": "y"}), widget("b")]
    before = copy.deepcopy(objects)
    hook.convert = lambda obj, to: {
        **obj,
        "apiVersion": to,
        "metadata": {**obj["metadata"], "labels": {"new": "label"}},
    }

    convert(hook.conversion(), objects)

    assert objects == before


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        (BatchLimits(most_objects=4), [2, 4, 4]),
        (BatchLimits(most_bytes=1), [1] * 10),
        (BatchLimits(most_objects=10), [10]),
    ],
)
def test_a_large_batch_is_split_and_put_together_in_order(
    hook: Webhook, limits: BatchLimits, sizes: list[int]
) -> None:
    converted = convert(hook.conversion(), widgets(10), limits=limits)

    assert sorted(len(call.review["request"]["objects"]) for call in hook.calls) == sizes
    assert [obj["metadata"]["name"] for obj in converted] == [f"w{n}" for n in range(10)]


def test_reviews_of_one_request_run_a_few_at_a_time(hook: Webhook) -> None:
    hook.pause()
    limits = BatchLimits(most_objects=1, calls_at_once=3)

    async def scenario() -> int:
        async with services(limits=limits) as made:
            converter = converter_for(crd_with(hook.conversion()), made)
            request = asyncio.create_task(converter.convert(widgets(8), V2))
            await asyncio.to_thread(hook.wait_for_calls, 3)
            at_once = hook.reviews
            hook.resume()
            await request
            return at_once

    assert run(scenario()) == 3
    assert hook.reviews == 8


def test_a_failing_part_fails_everything_and_stops_the_rest(hook: Webhook) -> None:
    def refuse_w3(obj: Object, api_version: str) -> Object:
        if obj["metadata"]["name"] == "w3":
            raise ValueError("w3 cannot be done")
        return {**obj, "apiVersion": api_version}

    hook.convert = refuse_w3

    with pytest.raises(Exception, match="w3 cannot be done"):
        convert(
            hook.conversion(), widgets(100), limits=BatchLimits(most_objects=1, calls_at_once=1)
        )

    assert hook.reviews == 4


def test_every_review_has_a_uid_of_its_own(hook: Webhook) -> None:
    convert(hook.conversion(), widgets(3), limits=BatchLimits(most_objects=1))

    assert len({call.review["request"]["uid"] for call in hook.calls}) == 3
