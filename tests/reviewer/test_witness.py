"""How witnesses are made: texts for patterns, values for schemas, nothing unproven."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.kube.schema.formats.named import FORMATS
from instar.review import review
from instar.tools.reviewer.engine import ReviewOptions, find
from instar.tools.reviewer.reviewed_crd import read_reviewed_crd
from instar.tools.reviewer.witnesses.samples import Samples
from instar.tools.reviewer.witnesses.search import Search
from instar.tools.reviewer.witnesses.texts import FORMAT_TEXTS, matching
from tests.reviewer.replay import assert_real
from tests.reviewer.widget import WIDGET, changed, drop, put, widget

KEPT = WIDGET["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
    "properties"
]["range"]["x-kubernetes-validations"][0]
PATTERNS = [
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    r"^(http|https|ssh)://.*$",
    r"^\d{2,4}-\w+$",
    "^$|^[^/]+/[^/]+$",
    "[0-9]+",
    "^(a|b){3}$",
    "^v[0-9]+((alpha|beta)[0-9]+)?$",
    "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$",
    "(?i)^abc$",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_texts_made_from_a_pattern_match_it(pattern: str) -> None:
    found = list(matching(pattern))

    assert found
    assert all(re.search(pattern, text) for text in found)


def test_long_texts_are_generated_when_required() -> None:
    assert max(map(len, matching("^[a-z]([-a-z]*[a-z])?$", least=100))) >= 100


def test_broken_pattern_gives_no_text() -> None:
    assert list(matching("[")) == []


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_sample_texts_have_their_format(name: str) -> None:
    assert all(FORMATS[name](text) for text in FORMAT_TEXTS[name])


def _schemas() -> st.SearchStrategy[dict[str, Any]]:
    scalars = st.one_of(
        st.builds(
            lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more},
            st.integers(0, 20),
            st.integers(0, 5),
        ),
        st.builds(
            lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more},
            st.integers(-50, 50),
            st.integers(0, 9),
        ),
        st.builds(lambda step: {"type": "integer", "multipleOf": step}, st.integers(1, 9)),
        st.just({"type": "boolean"}),
        st.just({"type": "string", "format": "date-time"}),
    )
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.builds(
                lambda node, low: {"type": "array", "items": node, "minItems": low},
                inner,
                st.integers(0, 3),
            ),
            st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(
                lambda members: {
                    "type": "object",
                    "properties": members,
                    "required": sorted(members),
                }
            ),
        ),
        max_leaves=6,
    )


@given(_schemas())
@settings(max_examples=60, deadline=None)
def test_smallest_value_fits_its_schema(schema: dict[str, Any]) -> None:
    samples = Samples()

    assert samples.fits(schema, samples.minimal(schema))


def test_transition_rule_is_shown_by_an_update() -> None:
    rule = {"rule": "self == oldSelf", "message": "immutable"}
    new = changed(put("spec", "image", x_kubernetes_validations=[rule]))

    first = review(widget(), new).findings[0]

    assert first.witness is not None
    assert first.witness.before is not None
    assert first.witness.before != first.witness.object
    assert_real(first, widget(), new)


def test_a_rule_about_a_new_field_only_is_not_an_error() -> None:
    new = changed(
        put(
            "spec",
            "range",
            properties={"low": {"type": "integer"}, "step": {"type": "integer"}},
            x_kubernetes_validations=[KEPT, {"rule": "!has(self.step) || self.step > 0"}],
        )
    )

    found = [item for item in review(widget(), new).findings if item.rule == "rule-added"]

    assert {item.severity.value for item in found} == {"warning"}
    assert all(item.unwitnessed for item in found)


def test_search_gives_up_when_its_time_is_over() -> None:
    old, new = read_reviewed_crd(widget()), read_reviewed_crd(changed(drop("spec", "note")))

    found = find(old, new, ReviewOptions(), Search(old, new, seconds=0))

    assert all("time" in item.unwitnessed for item in found if item.rule == "field-removed")
