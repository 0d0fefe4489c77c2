"""Rules by which simulated pods change their phase."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from instar.tools.nodes.pod_rules import DEFAULT_RULES, PodRule, RuleError, read_rules, rule_for
from instar.tools.nodes.pod_status import pod_status

_NOW = "2026-11-18T07:00:00Z"


def _pod(phase: str = "Pending", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "n", **metadata},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": phase},
    }


def test_by_default_pods_run_and_only_those_of_jobs_succeed() -> None:
    rules = read_rules(yaml.safe_load(DEFAULT_RULES))
    owner = [{"kind": "Job"}]

    pending, running = rule_for(_pod(), rules), rule_for(_pod("Running"), rules)
    of_job = rule_for(_pod("Running", ownerReferences=owner), rules)

    assert pending is not None
    assert pending.then == "Running"
    assert running is None
    assert of_job is not None
    assert (of_job.then, of_job.seconds) == ("Succeeded", 1.0)


def test_the_first_rule_that_fits_is_used() -> None:
    rules = read_rules(
        [
            {"then": "Failed", "namespace": "other"},
            {"then": "Failed", "labels": {"fail": "yes"}, "exitCode": 3},
            {"then": "Running", "ready": False},
        ]
    )

    chosen = rule_for(_pod(labels={"fail": "yes"}), rules)
    other = rule_for(_pod(), rules)

    assert chosen is not None
    assert (chosen.then, chosen.exit_code) == ("Failed", 3)
    assert other is not None
    assert not other.ready


def test_a_pod_that_is_being_deleted_has_no_rule() -> None:
    assert rule_for(_pod(deletionTimestamp=_NOW), [PodRule(then="Running")]) is None


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({}, "expected a list of rules"),
        (["x"], "rule 1: expected a mapping"),
        ([{"then": "Running", "when": 1}], "rule 1: unknown field when"),
        ([{"then": "Gone"}], "rule 1: then must be one of Pending, Running, Succeeded, Failed"),
        ([{"then": "Running", "phase": "Failed"}], "rule 1: a pod does not go from Failed to "),
        ([{"then": "Running", "after": "soon"}], "rule 1: after must be a duration such as 500ms"),
        ([{"then": "Failed", "exitCode": True}], "rule 1: exitCode must be a number from 0 to 255"),
        ([{"then": "Running", "ready": "no"}], "rule 1: ready must be true or false"),
        ([{"then": "Running", "labels": []}, {"then": "Running", "labels": "x"}],
         "rule 2: labels must be a mapping"),
    ],
)  # fmt: skip
def test_a_wrong_rule_is_refused_with_its_number(document: Any, problem: str) -> None:
    with pytest.raises(RuleError, match=problem):
        read_rules(document)


def test_a_running_pod_keeps_its_address_and_start_when_it_ends() -> None:
    running = pod_status(_pod(), PodRule(then="Running"), "10.0.0.1", _NOW)
    later = "2026-11-18T08:00:00Z"

    ended = pod_status({**_pod(), "status": running}, PodRule(then="Succeeded"), "10.0.0.2", later)

    assert (ended["podIP"], ended["startTime"]) == ("10.0.0.1", _NOW)
    conditions = {one["type"]: one["status"] for one in ended["conditions"]}
    assert conditions["Ready"] == "False"
    assert conditions["Initialized"] == "True"
    terminated = ended["containerStatuses"][0]["state"]["terminated"]
    assert terminated == {
        "exitCode": 0, "reason": "Completed", "startedAt": _NOW, "finishedAt": later,
    }  # fmt: skip
