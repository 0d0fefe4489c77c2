"""Real releases: no crash, under two seconds a CRD, and no witness that is not real."""

from __future__ import annotations

import time

import pytest

from instar.review import review
from tests.reviewer.corpus import CORPUS, Neighbours, crds, neighbours
from tests.reviewer.replay import assert_real

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}")

MOST_SECONDS = 2.0
ALWAYS_SHOWN = {"field-removed", "field-renamed", "field-moved", "required-added"}


@pytest.mark.parametrize("pair", neighbours(), ids=lambda pair: pair.name)
def test_neighbouring_releases_are_reviewed_in_time_with_real_witnesses(pair: Neighbours) -> None:
    before, after = crds(pair.old), crds(pair.new)
    for name in sorted(set(before) & set(after)):
        # CPU time: the limit is about the reviewer, not about what else the machine does.
        started = time.process_time()
        report = review(before[name], after[name])
        spent = time.process_time() - started

        assert report.problems == ()
        assert spent < MOST_SECONDS, f"{name} took {spent:.1f} s"
        for finding in report.findings:
            if finding.witness is not None:
                assert_real(finding, before[name], after[name])
            elif finding.severity == "error":
                assert finding.rule not in ALWAYS_SHOWN, f"{finding.path} has no witness"
