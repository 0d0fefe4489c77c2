"""Real releases: no crash, and no witness that is not real."""

from __future__ import annotations

import pytest

from instar.review import review
from instar.tools.reviewer.report import NoWitness
from tests.reviewer.corpus import Neighbours, crds, neighbours
from tests.reviewer.replay import assert_real
from tests.support.corpus import needs_corpus

pytestmark = needs_corpus

ALWAYS_SHOWN = {"field-removed", "field-renamed", "field-moved", "required-added"}


@pytest.mark.parametrize("pair", neighbours(), ids=lambda pair: pair.name)
def test_neighbouring_releases_are_reviewed_with_real_witnesses(pair: Neighbours) -> None:
    before, after = crds(pair.old), crds(pair.new)
    for name in sorted(set(before) & set(after)):
        report = review(before[name], after[name])

        assert report.problems == ()
        for finding in report.findings:
            if finding.witness is not None:
                assert_real(finding, before[name], after[name])
            elif finding.severity == "error" and finding.unwitnessed != NoWitness.NOT_WRITABLE:
                assert finding.rule not in ALWAYS_SHOWN, f"{finding.path} has no witness"
