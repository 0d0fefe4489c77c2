"""Batches, processes, webhooks and bad input: the verdict is the same, or says what it lacks."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from instar.tools.rehearsal.batch import not_read
from instar.tools.rehearsal.clients import clients_of
from instar.tools.rehearsal.converting import Converting
from instar.tools.rehearsal.go_no_go import decide
from instar.tools.rehearsal.model import CrdRehearsal, Rehearsal, StepKind, StepOutcome, Way
from instar.tools.rehearsal.owned_fields import own_fields
from instar.tools.rehearsal.rollback import new_fields
from instar.tools.rehearsal.run import RehearsalOptions, RehearsalRelease, rehearse
from instar.tools.rehearsal.steps import steps
from instar.tools.reviewer.report import Damage
from tests.rehearsal.planted.cases import BOTH, COLOURED, OLD, WEBHOOK
from tests.rehearsal.worlds import (
    NAME,
    TEXT,
    crd,
    owned,
    rehearsed,
    use,
    version,
    widget,
    world,
)
from tests.support.webhook import Webhook

NEW = crd(version("v1", {"size": {"type": "integer", "maximum": 5}}))


def objects(number: int) -> list[Object]:
    return [widget(each, "v1beta1", {"size": each, "colour": "red"}) for each in range(number)]


def told(report: Rehearsal) -> list[Any]:
    (found,) = report.crds
    return [
        (step.kind, step.judged, dict(step.damages.counts), step.lasting, step.back.way)
        for step in found.steps
    ]


def test_batches_say_together_what_all_objects_say_at_once() -> None:
    whole = rehearsed(world(OLD, objects(9)), NEW, faults=False)
    parts = rehearsed(world(OLD, objects(9)), NEW, faults=False, batch=4)

    assert told(parts) == told(whole)
    assert whole.crds[0].steps[0].damages.counts == {Damage.PRUNED: 9}


def test_processes_say_together_what_one_says() -> None:
    before = world(OLD, objects(4), [use("v1beta1", "list")])

    several = rehearsed(before, NEW, faults=False, batch=2, jobs=2)

    assert told(several) == told(rehearsed(before, NEW, faults=False))
    assert several.crds[0].steps[-2].clients["argocd/v2 (ci)"].requests == 1


def test_a_webhook_behind_a_url_is_called_and_the_clusters_is_not() -> None:
    after = crd(version("v1", COLOURED), version("v1beta1", COLOURED), conversion=WEBHOOK)
    with Webhook() as hook:
        converting = Converting({}, {"": hook.url}, hook.authority.cert_pem.bytes())

        report = rehearsed(world(OLD, objects(3)), after, converting=converting)

        assert hook.objects > 3
    assert decide(report).go
    assert [fault.recovered for fault in report.crds[0].faults] == [True, True, True]


def test_a_webhook_that_does_not_answer_makes_objects_unreadable() -> None:
    after = crd(version("v1beta1", COLOURED), version("v1", COLOURED), conversion=WEBHOOK)
    converting = Converting({}, {NAME: "https://127.0.0.1:1/nobody"})

    report = rehearsed(world(OLD, objects(2)), after, converting=converting)

    assert report.crds[0].steps[0].damages.counts == {Damage.UNREADABLE: 2}
    assert not decide(report).go


def test_objects_that_are_none_are_counted_as_unknown() -> None:
    strange: list[Object] = [
        {"apiVersion": "example.com/v9", "kind": "Widget", "metadata": {"name": "a"}},
        {"apiVersion": "example.com/v1beta1", "kind": "Gadget", "metadata": {"name": "b"}},
        {"apiVersion": "example.com/v1beta1", "kind": "Widget", "metadata": "c"},
    ]

    report = rehearsed(world(OLD, [*objects(1), *strange]), OLD)

    assert sum(report.crds[0].unloaded.values()) == 3
    assert {reason.word for reason in decide(report).reasons} == {"unknown"}


def test_a_crd_of_before_that_no_server_takes_leaves_its_objects_unknown() -> None:
    broken = crd(version("v1beta1", {"size": {"type": "nonsense"}}))

    report = rehearsed(world(broken, objects(2)), OLD)

    assert sum(report.crds[0].unloaded.values()) == 2
    assert not decide(report).go


def test_objects_missing_from_the_snapshot_are_a_no_go() -> None:
    report = rehearsed(world(OLD, objects(1), problems=["cut off"]), OLD)

    assert [reason.word for reason in decide(report).reasons] == ["problem"]


def test_the_load_grows_with_the_real_number_of_objects() -> None:
    report = rehearsed(world(OLD, objects(3)), crd(version("v1", COLOURED)))

    load = report.crds[0].load
    assert load is not None
    assert (load.objects, load.writes) == (3, 3)
    assert any("assumed" in text for text in load.basis)


def test_steps_come_in_the_order_of_the_plan() -> None:
    live = {**BOTH, "status": {"storedVersions": ["v1"]}}
    goal = crd(version("v2", COLOURED), version("v1beta1", COLOURED, served=False))

    kinds = [step.kind for step in steps(live, goal, "r")]

    assert kinds == [
        StepKind.SERVE,
        StepKind.FLIP,
        StepKind.MIGRATE,
        StepKind.UNSERVE,
        StepKind.REMOVE,
    ]
    assert steps(live, BOTH, "r") == []


def test_the_way_back_names_fields_the_old_crd_has_no_place_for() -> None:
    after = crd(
        version("v1beta1", {**COLOURED, "shape": {"type": "object", "properties": {"a": TEXT}}})
    )

    assert new_fields(OLD, after) == ("spec.shape (v1beta1)",)


def test_the_way_back_is_free_while_nothing_was_rewritten() -> None:
    report = rehearsed(world(OLD, objects(1)), crd(version("v1", COLOURED)), faults=False)

    ways = {step.kind: step.back.way for step in report.crds[0].steps}
    assert ways[StepKind.SERVE] is Way.FREE
    assert ways[StepKind.MIGRATE] is Way.MIGRATION


def test_a_manager_applies_exactly_what_it_owns() -> None:
    obj = widget(0, "v1", {"size": 1, "colour": "red", "tags": [{"k": "a", "v": 1}, {"k": "b"}]})
    fields: Object = {"f:spec": {"f:size": {}, "f:tags": {'k:{"k":"a"}': {".": {}, "f:v": {}}}}}

    own = own_fields(owned("m", "v1", fields), obj)

    assert own is not None
    assert own["spec"] == {"size": 1, "tags": [{"k": "a", "v": 1}]}


def test_instars_own_tools_do_not_count_as_clients() -> None:
    uses = [use("v1", "list", agent="instar-migrate"), use("v1", "list", agent="flux/v2")]

    found = clients_of({("example.com", "widgets")}, uses, [])

    assert list(found["example.com", "widgets"]) == ["flux/v2 (ci)"]


def test_a_crd_that_is_new_is_tried_too() -> None:
    gadgets = crd(version("v1", COLOURED))
    gadgets["metadata"] = {"name": "gadgets.example.com"}
    before = world(OLD, objects(1))
    options = RehearsalOptions(Converting({}, {}))

    report = rehearse(
        before, [RehearsalRelease("r1", {"gadgets.example.com": gadgets})], options, quiet
    )

    assert [reason.word for reason in decide(report).reasons] == ["refused"]
    assert list(report.untouched) == [NAME]


def quiet(name: str, count: int) -> None:
    """Nobody watches."""


def test_a_release_that_a_server_refuses_is_a_no_go() -> None:
    after = crd(version("v1beta1", COLOURED), version("v1", COLOURED))
    for each in after["spec"]["versions"]:
        each["storage"] = True

    report = rehearsed(world(OLD, objects(1)), after, faults=False)

    assert "refused" in {reason.word for reason in decide(report).reasons}
    assert report.crds[0].steps[-1].kind is StepKind.WRITTEN


def test_a_webhook_that_was_down_before_the_first_step_leaves_versions_unknown() -> None:
    before = crd(version("v1beta1", COLOURED), version("v1", COLOURED), conversion=WEBHOOK)
    described = {"size": {"type": "integer", "description": "new"}, "colour": TEXT}
    after = crd(version("v1beta1", described), version("v1", described), conversion=WEBHOOK)
    converting = Converting({}, {NAME: "https://127.0.0.1:1/nobody"})

    report = rehearsed(world(before, objects(2)), after, converting=converting, faults=False)

    assert report.crds[0].unloaded == {not_read("v1"): 2}
    assert {reason.word for reason in decide(report).reasons} == {"unknown"}


def test_a_manifest_without_a_namespace_is_judged_in_the_default_one() -> None:
    bare = [widget(each, "v1beta1", {"size": each}, namespace=None) for each in range(2)]

    report = rehearsed(world(OLD, bare), crd(version("v1", COLOURED)), faults=False)

    assert decide(report).go
    migrated = [step.migration for step in report.crds[0].steps if step.migration is not None]
    assert [dict(each.counts) for each in migrated] == [{"rewritten": 2}]


def test_a_write_whose_body_was_not_recorded_still_needs_its_version() -> None:
    event = {
        "stage": "ResponseComplete",
        "verb": "patch",
        "requestURI": "/apis/example.com/v1beta1/namespaces/default/widgets/w0",
        "userAgent": "operator/v1",
        "objectRef": {
            "apiGroup": "example.com",
            "apiVersion": "v1beta1",
            "resource": "widgets",
            "name": "w0",
            "namespace": "default",
        },
    }
    before = world(OLD, objects(1), events=[event])

    report = rehearsed(before, crd(version("v1", COLOURED)), faults=False)

    assert "broken" in {reason.word for reason in decide(report).reasons}


def test_a_client_that_deletes_unconvertible_objects_is_broken() -> None:
    before = crd(version("v1beta1", COLOURED), version("v1", COLOURED))
    after = crd(version("v1beta1", COLOURED), version("v1", COLOURED), conversion=WEBHOOK)
    converting = Converting({}, {NAME: "https://127.0.0.1:1/nobody"})
    deleting = world(before, objects(1), [use("v1", "delete")])

    report = rehearsed(deleting, after, converting=converting, faults=False)

    assert report.crds[0].steps[-1].clients["argocd/v2 (ci)"].standing == "broken"


def test_an_object_no_path_leads_to_is_unknown() -> None:
    odd = widget(1, "v1beta1", {"size": 1}, name="<b>/x</b>")

    report = rehearsed(world(OLD, [odd]), crd(version("v1", COLOURED)), faults=False)

    assert {reason.word for reason in decide(report).reasons} == {"unknown"}


def test_problems_from_before_the_release_are_reported() -> None:
    step = StepOutcome("r1", StepKind.SERVE, "apply the new schemas", judged=2, before=2)

    found = decide(Rehearsal("a test", ["r1"], [CrdRehearsal(NAME, 2, steps=[step])]))

    assert found.go
    assert "in trouble before the upgrade already" in found.warnings[0]


def test_a_recorded_watch_is_tried_as_a_list() -> None:
    event = {
        "stage": "ResponseStarted",
        "verb": "watch",
        "requestURI": "/apis/example.com/v1beta1/widgets?watch=true&allowWatchBookmarks=true"
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        "userAgent": "watcher/v1",
        "objectRef": {
            "apiGroup": "example.com",
            "apiVersion": "v1beta1",
            "resource": "widgets",
        },
    }
    before = world(OLD, objects(1), events=[event])

    report = rehearsed(before, crd(version("v1", COLOURED)), faults=False)

    assert not report.crds[0].unloaded
    standings = [step.clients["watcher/v1"].standing for step in report.crds[0].steps]
    assert (standings[0], standings[-1]) == ("unaffected", "broken")


def test_a_verdict_without_recorded_clients_says_so() -> None:
    after = crd(version("v1", COLOURED))

    alone = rehearsed(world(OLD, objects(1)), after, faults=False)
    used = rehearsed(world(OLD, objects(1), [use("v1beta1", "list")]), after, faults=False)

    text = "no usage and no audit events were captured: clients are known by managedFields alone"
    assert text in alone.assumptions
    assert text not in used.assumptions


def test_objects_at_a_version_that_stored_versions_denies_are_no_go_in_a_store() -> None:
    false = crd(version("v1beta1", COLOURED), version("v1", COLOURED), storage="v1", stored=["v1"])
    before = world(false, objects(4))
    before.exact = True

    decision = decide(rehearsed(before, crd(version("v1", COLOURED)), faults=False))

    assert not decision.go
    (reason,) = [item for item in decision.reasons if item.word == "stored-versions"]
    assert "4 objects stored at v1beta1" in reason.text
