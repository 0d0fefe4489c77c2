"""Every recorded request is answered by instar as kube-apiserver answered it, but for the steps
that ``differences.py`` lists with a reason each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.recordings.corpus import ANSWERS, recorded
from tests.recordings.differences import DECIDED, OPEN
from tests.recordings.hooks import RecordingHook
from tests.recordings.playing import PlayedServer
from tests.recordings.questions import TOPICS, scenarios_of
from tests.recordings.replay import compare, played_server

_SHOWN = 10
_FEWEST = 5000


@pytest.fixture(scope="module")
def played() -> Iterator[PlayedServer]:
    with played_server() as server:
        yield server


@pytest.fixture(scope="module")
def hook() -> Iterator[RecordingHook]:
    with RecordingHook() as running:
        yield running


def _listed() -> dict[tuple[str, str], str]:
    """(scenario, number of a step) → the reason of a known difference."""
    return {
        (scenario, step): reason
        for table in (DECIDED, OPEN)
        for reason, scenarios in table.items()
        for scenario, steps in scenarios.items()
        for step in steps.split()
    }


@pytest.mark.parametrize("topic", TOPICS)
def test_requests_are_answered_as_recorded(
    topic: str, played: PlayedServer, hook: RecordingHook
) -> None:
    listed = _listed()

    found = compare(topic, played, hook)

    keys = {line: (line.split()[0], line.split()[1]) for line in found if " " in line}
    other = {line: texts for line, texts in found.items() if texts and keys.get(line) not in listed}
    gone = [line for line, texts in found.items() if not texts and keys.get(line) in listed]
    told = [f"{line}\n    " + "\n    ".join(texts[:3]) for line, texts in other.items()]
    assert not other, f"{len(other)} other answers:\n" + "\n".join(told[:_SHOWN])
    assert not gone, f"the same by now, so differences.py need not list them: {gone}"


def test_every_listed_difference_is_about_a_request() -> None:
    asked = {
        (scenario.name, ask.name.split()[0])
        for topic in TOPICS
        for scenario in scenarios_of(topic)
        for ask in scenario.asks
    }

    assert _listed().keys() <= asked


def test_the_corpus_has_a_file_for_each_topic_and_thousands_of_requests() -> None:
    requests = [row for topic in TOPICS for rows in recorded(topic).values() for row in rows]

    assert sorted(path.stem for path in ANSWERS.glob("*.jsonl")) == TOPICS
    assert len(requests) >= _FEWEST


def test_scenarios_have_names_of_their_own() -> None:
    names = [scenario.name for topic in TOPICS for scenario in scenarios_of(topic)]

    assert len(set(names)) == len(names)
