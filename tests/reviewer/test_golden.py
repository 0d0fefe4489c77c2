"""A folder per rule: old.yaml, new.yaml, expected.json (INSTAR_UPDATE_GOLDEN=1 rewrites it)."""

from __future__ import annotations

import json

import pytest

from instar.tools.reviewer.rules import RULES
from tests.reviewer.golden import cases, expected, review_folder, written


@pytest.mark.parametrize("name", cases())
def test_review_of_golden_folder_is_as_written_down(name: str) -> None:
    found = json.loads(json.dumps(written(review_folder(name))))

    assert found == expected(name, found)
    assert name in {item["rule"] for item in found["findings"]}


def test_every_rule_has_its_golden_folder() -> None:
    assert {rule.id for rule in RULES} == set(cases())
