"""What a rehearsal tells: in every form the same verdict, nothing hostile, nothing secret."""

from __future__ import annotations

import json
from xml.etree import ElementTree as Xml

import pytest

from instar.tools.rehearsal.go_no_go import GoNoGo, decide
from instar.tools.rehearsal.model import (
    ClientStanding,
    ClientVerdict,
    Rehearsal,
    StepKind,
    StepOutcome,
)
from instar.tools.rehearsal.render import MACHINE
from instar.tools.rehearsal.render.text import to_text
from tests.rehearsal.worlds import SIZE, TEXT, crd, rehearsed, use, version, widget, world

HOSTILE = "<script>alert(1)</script>\x1b[2J|`*"
SECRET = "hunter2hunter2"


@pytest.fixture(scope="module")
def told() -> tuple[Rehearsal, GoNoGo]:
    """An object with hostile and secret values loses both kinds of fields, and is refused anew."""
    long = {"type": "string", "maxLength": 3}
    old = crd(version("v1", {"size": SIZE, "note": TEXT, "password": TEXT, "apiToken": TEXT}))
    new = crd(version("v1", {"size": SIZE, "apiToken": long}))
    spec = {"size": 1, "note": HOSTILE, "password": SECRET, "apiToken": SECRET}
    uses = [use("v1", "create", agent=f"evil{HOSTILE.replace(' ', '')}", user="x")]
    report = rehearsed(world(old, [widget(0, "v1", spec)], uses), new)
    return report, decide(report)


@pytest.mark.parametrize("form", [*MACHINE, "text"])
def test_no_form_shows_a_secret(told: tuple[Rehearsal, GoNoGo], form: str) -> None:
    text = to_text(*told, details=True) if form == "text" else MACHINE[form](*told)

    assert SECRET not in text
    assert "spec.password is gone" in text


def test_values_do_not_become_markup(told: tuple[Rehearsal, GoNoGo]) -> None:
    page, comment = MACHINE["html"](*told), MACHINE["markdown"](*told)

    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "http" not in page.replace("https://", "http").split("<body>")[0]
    assert "<script>" not in comment.replace("```diff", "").split("### ")[0]


def test_values_do_not_move_a_terminals_cursor(told: tuple[Rehearsal, GoNoGo]) -> None:
    assert "\x1b" not in to_text(*told, details=True)


def test_machines_get_the_verdict(told: tuple[Rehearsal, GoNoGo]) -> None:
    document = json.loads(MACHINE["json"](*told))
    suites = Xml.fromstring(MACHINE["junit"](*told))

    assert document["go"] is False
    assert {reason["word"] for reason in document["reasons"]} == {"pruned", "broken"}
    assert int(suites.findall("testsuite")[0].get("failures", "0")) == 2


def test_an_accepted_reason_does_not_block_a_go(told: tuple[Rehearsal, GoNoGo]) -> None:
    report, _ = told

    assert not decide(report, ["pruned"]).go
    assert decide(report, ["pruned", "broken"]).go


def test_a_client_that_could_not_be_tried_is_unknown() -> None:
    step = StepOutcome("r", StepKind.SERVE, "serve v2")
    step.clients = {"silent": ClientVerdict(), "heard": ClientVerdict(requests=1)}

    step.silence_is_unknown()

    assert step.clients["silent"].standing is ClientStanding.UNKNOWN
    assert step.clients["heard"].standing is ClientStanding.UNAFFECTED
