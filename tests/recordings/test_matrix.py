"""No cell of the matrix of writes is forgotten: its rows are what discovery lists."""

from __future__ import annotations

from tests.recordings.questions.matrix import LEFT_OUT, MANIFESTS, scenarios, writable
from tests.recordings.scenarios import PROTOBUF, YAML

_KINDS_OF_WRITES = 11


def test_every_resource_that_can_be_written_has_a_manifest() -> None:
    missing = [
        (each.group, each.plural)
        for each, _ in writable()
        if (each.group, each.plural) not in MANIFESTS
    ]

    assert not missing


def test_a_resource_that_is_left_out_has_no_manifest() -> None:
    assert not LEFT_OUT.keys() & MANIFESTS.keys()


def test_every_part_is_put_and_patched_in_every_encoding() -> None:
    for scenario in scenarios():
        words = [" ".join(ask.name.split()[1:]) for ask in scenario.asks]
        parts = {word.split()[1] for word in words if len(word.split()) == 3 and word[0] == "p"}
        for part in parts:
            asked = {word.split()[-1] for word in words if f" {part} " in word}
            assert asked == {"json", "yaml", "proto"}, (scenario.name, part)
        medias = {ask.media for ask in scenario.asks}
        assert {YAML, PROTOBUF} <= medias, scenario.name
        assert len(words) >= _KINDS_OF_WRITES, scenario.name
