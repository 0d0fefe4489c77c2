"""Real CRDs, as three projects released them, are read, kept and accepted."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from instar.base.json_values import Object, same_json
from instar.kube.api.crd_codec import decode, from_internal, to_internal
from instar.kube.crds.defaults import with_defaults
from instar.kube.crds.lifecycle import status_sequence
from tests.crds.make import NOW, created, internal, problems, update_problems, written
from tests.support.corpus import corpus


@pytest.fixture(scope="module")
def releases() -> list[tuple[Path, Object]]:
    return list(corpus())


def test_every_real_crd_is_accepted(releases: list[tuple[Path, Object]]) -> None:
    assert {path: found for path, obj in releases if (found := problems(obj))} == {}


def test_real_crds_hold_no_unknown_field(releases: list[tuple[Path, Object]]) -> None:
    for _, obj in releases:
        assert decode(obj, obj["apiVersion"].rpartition("/")[2]).unknown == []


def test_real_crds_survive_the_round_trip(releases: list[tuple[Path, Object]]) -> None:
    for path, obj in releases:
        form = internal(obj)
        assert same_json(internal(from_internal(form, "v1")), form), path
        assert same_json(internal(from_internal(form, "v1beta1")), form), path
        if obj["apiVersion"].endswith("/v1"):
            before = with_defaults(decode(obj, "v1").obj)
            assert same_json(from_internal(to_internal(before), "v1"), before), path


def test_real_crds_are_established_when_alone(releases: list[tuple[Path, Object]]) -> None:
    for path, obj in releases:
        last = status_sequence(written(obj), [], NOW)[-1]
        states = {c["type"]: c["status"] for c in last["conditions"]}
        assert states["Established"] == "True", path


def _age(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", path.parent.name))


def test_neighbouring_releases_update_unless_a_stored_version_vanished(
    releases: list[tuple[Path, Object]],
) -> None:
    history: dict[str, list[tuple[Path, Object]]] = defaultdict(list)
    for path, obj in releases:
        if obj["apiVersion"].endswith("/v1"):
            history[obj["metadata"]["name"]].append((path, obj))
    pairs = 0
    for line in history.values():
        line.sort(key=lambda entry: _age(entry[0]))
        for (_, old), (path, new) in pairwise(line):
            pairs += 1
            (stored,) = created(old)["status"]["storedVersions"]
            found = update_problems(new, old, established=True)
            if any(item["name"] == stored for item in new["spec"]["versions"]):
                assert found == [], path
            else:
                assert [text.partition(":")[0] for text in found] == ["status.storedVersions[0]"]
    assert pairs > 80
