"""The plan and the checklist."""

from __future__ import annotations

import argparse
import importlib

from instar.base.json_values import Object
from instar.review import review
from instar.tools.reviewer.report import ChecklistAnswer, PlanStep
from tests.reviewer.widget import Change, add, changed, drop, put, version, widget


def _of(change: Change) -> tuple[tuple[PlanStep, ...], dict[str, ChecklistAnswer]]:
    [crd] = review(widget(), changed(change), witnesses=False).crds
    return crd.plan, {item.question: item for item in crd.checklist}


def _replace_version(crd: Object) -> None:
    first, second = crd["spec"]["versions"]
    crd["spec"]["versions"] = [{**first, "name": "v2"}]
    del second


def test_replaced_version_goes_the_whole_way_in_order() -> None:
    steps, _ = _of(_replace_version)

    titles = [step.title.split(" ")[0] for step in steps]
    assert titles == ["add", "deprecate", "flip", "rewrite", "stop", "prune", "remove"]
    releases = [step.release for step in steps]
    assert releases == sorted(releases)


def test_every_step_that_changes_something_says_how_and_how_to_get_back() -> None:
    steps, _ = _of(_replace_version)

    assert all(step.commands and step.rollback and step.preconditions for step in steps)
    assert any("ROLLBACK POINT" in step.rollback for step in steps)


def _store_a_version_without_a_field(crd: Object) -> None:
    first, second = crd["spec"]["versions"]
    first["storage"], second["storage"] = not first["storage"], not second["storage"]
    stored = first if first["storage"] else second
    del stored["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["note"]


def test_a_field_that_a_rewrite_would_destroy_comes_before_everything_else() -> None:
    steps, _ = _of(_store_a_version_without_a_field)

    assert steps[0].release == "before anything else"
    assert "conversion-none-loses" in " ".join(steps[0].preconditions)
    [rewrite] = [step for step in steps if step.rewrites]
    assert "instar migrate --plan names no field that would be lost" in rewrite.preconditions


def test_no_step_trims_stored_versions_by_hand() -> None:
    steps, _ = _of(_replace_version)

    assert not any("subresource=status" in command for step in steps for command in step.commands)


def test_removed_field_brings_the_deprecation_playbook() -> None:
    steps, answers = _of(drop("spec", "note"))

    assert [step.release for step in steps] == ["N", "N", "N", "N+1", "N+2"]
    assert not answers["Is this change safe for existing stored objects?"].yes
    announced = answers["Are rollout steps and communication/deprecation steps defined?"]
    assert not announced.yes
    assert "spec.note" in announced.evidence


def test_a_field_marked_deprecated_counts_as_announced() -> None:
    old = changed(put("spec", "note", description="Deprecated: use name."))
    new = changed(drop("spec", "note"))

    [crd] = review(old, new, witnesses=False).crds

    [answer] = [item for item in crd.checklist if "deprecation" in item.question]
    assert answer.yes


def test_changed_default_is_written_out_first() -> None:
    steps, _ = _of(put("spec", "replicas", default=2))

    assert "write the old default" in steps[0].title
    assert steps[0].commands == ("instar migrate widgets.example.com --rewrite-current",)


def test_cosmetic_change_needs_no_plan() -> None:
    steps, answers = _of(add(("spec", "colour"), {"type": "string"}))

    assert steps == ()
    assert all(item.yes or "described" in question for question, item in answers.items())


def test_version_that_was_deprecated_is_not_deprecated_again() -> None:
    old = changed(version(1, deprecated=True))
    new = changed(version(1, deprecated=True, served=False))

    [crd] = review(old, new, witnesses=False).crds

    assert [step.title for step in crd.plan] == ["stop serving v1beta1"]


def test_every_command_of_instar_in_a_plan_can_be_parsed() -> None:
    commands = [
        command.split()[1:]
        for change in (_replace_version, put("spec", "replicas", default=2))
        for step in _of(change)[0]
        for command in step.commands
        if command.startswith("instar ")
    ]

    assert commands
    for name, *arguments in commands:
        parser = argparse.ArgumentParser()
        importlib.import_module(f"instar.cli.commands.{name}").add_arguments(parser)
        parser.parse_args(arguments)


def test_crd_alone_has_a_checklist_and_no_plan() -> None:
    [crd] = review(None, widget()).crds

    assert crd.plan == ()
    assert len(crd.checklist) == 2
