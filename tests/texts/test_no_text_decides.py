"""Every message changed, nothing else changes: no text decides anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from instar.base.errors import NotFound
from instar.base.field_errors import invalid
from instar.kube.schema.metadata.types import MetaError
from instar.tools.reviewer.reviewing import review
from tests.reviewer.golden import sides_of
from tests.texts import behaviour, served
from tests.texts.rewording import MARK, reword_everything

SCENARIOS: tuple[Callable[[], Any], ...] = (
    behaviour.of_crds,
    behaviour.of_objects,
    behaviour.of_reviews,
    behaviour.of_checks,
    behaviour.of_contract,
    served.of_requests,
    served.of_migrations,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_other_words_change_nothing_that_is_done(
    scenario: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = scenario()

    reword_everything(monkeypatch)

    assert scenario() == before


def test_the_words_were_really_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = sides_of("field-removed")

    reword_everything(monkeypatch)

    assert invalid("a", 1, "must be 2").detail == f"{MARK}zhfg or 2"
    assert NotFound("gone").message == f"{MARK}tbar"
    assert str(MetaError("not a map")) == f"{MARK}abg n znc"
    assert all(item.message.startswith(MARK) for item in review(old, new).findings)
