"""What may be done with a version, and why not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from instar.kube.api.crd import read_crd
from instar.tools.migrator.census.usage import VersionUsage, VersionUse
from instar.tools.migrator.census.version_census import StoredVersionCensus
from instar.tools.migrator.versions.lifecycle import (
    STEPS,
    Situation,
    blocks_schema,
    next_steps,
    why_safe,
)
from tests.migrator.support import crd

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def _situation(
    *,
    storage: str = "v1",
    served: tuple[str, ...] = ("v1beta1", "v1"),
    stored: tuple[str, ...] = ("v1",),
    counts: dict[str, int] | None = None,
    used_days_ago: float | None = None,
    known_days: float | None = 100,
    agent: str = "kubectl",
    **changes: Any,
) -> Situation:
    definition = crd(storage=storage, served=served)
    definition["status"] = {"storedVersions": list(stored)}
    uses = []
    if used_days_ago is not None:
        last = NOW - timedelta(days=used_days_ago)
        uses.append(VersionUse("v1beta1", "list", "jane", agent, 3, last))
    since = None if known_days is None else NOW - timedelta(days=known_days)
    return Situation(
        crd=read_crd(definition),
        census=StoredVersionCensus(counts or {}),
        usage=VersionUsage(since, uses),
        now=NOW,
        **changes,
    )


@pytest.mark.parametrize(
    ("step", "version", "situation", "reason"),
    [
        ("add", "v1", {}, "v1 exists already"),
        ("add", "V2", {}, "no version name"),
        ("serve", "v1", {}, "v1 is served already"),
        ("serve", "v9", {}, "there is no version v9; there is v1beta1, v1"),
        ("deprecate", "v1", {}, "only less stable versions would remain (v1beta1)"),
        ("deprecate", "v1beta1", {"served": ("v1beta1",)}, "no other served version"),
        ("storage", "v1", {}, "v1 is the storage version already"),
        ("storage", "v1", {"storage": "v1beta1", "served": ("v1beta1",)}, "v1 is not served"),
        ("unserve", "v1", {}, "v1 is the storage version"),
        ("unserve", "v1beta1", {"served": ("v1",)}, "not served any more"),
        ("unserve", "v1beta1", {"used_days_ago": 3}, "in use: kubectl (jane) list 3 d ago"),
        ("unserve", "v1beta1", {"known_days": None}, "no requests are counted here"),
        ("unserve", "v1beta1", {"known_days": 5}, "requests are known for 5 d only, not 14 days"),
        ("remove", "v1beta1", {}, "v1beta1 is still served"),
        ("remove", "v1", {}, "v1 is the storage version"),
        (
            "remove",
            "v1beta1",
            {"served": ("v1",), "stored": ("v1beta1", "v1"), "counts": {"v1beta1": 312}},
            "312 objects are stored in it; run instar migrate",
        ),
        (
            "remove",
            "v1beta1",
            {"served": ("v1",), "stored": ("v1beta1", "v1")},
            "status.storedVersions still names v1beta1",
        ),
    ],
)
def test_a_step_is_refused_with_its_reason(
    step: str, version: str, situation: dict[str, Any], reason: str
) -> None:
    blocks = STEPS[step](_situation(**situation), version)

    assert any(reason in text for text in blocks), blocks


@pytest.mark.parametrize(
    ("step", "version", "situation"),
    [
        ("add", "v2", {}),
        ("serve", "v1beta1", {"served": ("v1",)}),
        ("deprecate", "v1beta1", {}),
        ("storage", "v1", {"storage": "v1beta1"}),
        ("unserve", "v1beta1", {"used_days_ago": 15}),
        ("unserve", "v1beta1", {}),
        ("unserve", "v1beta1", {"known_days": None, "clients_migrated": True}),
        ("unserve", "v1beta1", {"used_days_ago": 0, "agent": "instar-migrate"}),
        ("remove", "v1beta1", {"served": ("v1",)}),
    ],
)
def test_a_step_is_free_when_its_preconditions_hold(
    step: str, version: str, situation: dict[str, Any]
) -> None:
    assert STEPS[step](_situation(**situation), version) == []


def test_the_storage_version_has_no_next_step() -> None:
    assert next_steps(_situation(), "v1") == []


def test_an_old_version_is_deprecated_then_unserved_then_removed() -> None:
    steps = dict(next_steps(_situation(used_days_ago=30), "v1beta1"))

    assert list(steps) == ["deprecate", "unserve", "remove"]
    assert steps["unserve"] == []
    assert steps["remove"] == ["v1beta1 is still served; unserve it first and wait for complaints"]


def test_a_better_version_may_become_the_storage_version() -> None:
    assert next_steps(_situation(storage="v1beta1"), "v1") == [("storage", [])]


def test_a_safe_step_says_what_makes_it_safe() -> None:
    assert why_safe(_situation(used_days_ago=16), "unserve", "v1beta1") == "no request for 16 d"


def test_an_estimate_counts_as_what_it_may_be_at_most() -> None:
    situation = _situation(served=("v1",), stored=("v1beta1", "v1"))
    unsure = StoredVersionCensus({"v1": 3}, unknown=4, candidates=("v1beta1", "v1"), exact=False)
    unsure_situation = Situation(situation.crd, unsure, situation.usage, NOW)

    blocks = STEPS["remove"](unsure_situation, "v1beta1")

    assert any(text.startswith("0 to 4 objects are stored in it") for text in blocks)


def test_another_schema_needs_a_webhook() -> None:
    definition = read_crd(crd())
    schema = {"type": "object", "properties": {"spec": {"type": "string"}}}

    assert "conversion strategy None" in blocks_schema(definition, "", schema)[0]
    assert blocks_schema(definition, "", definition.versions[0].schema) == []
    assert blocks_schema(definition, "v7", None) == ["there is no version v7 to copy from"]
