"""A status that exists only as a default follows the default of the next release."""

from __future__ import annotations

from instar.base.json_values import Object, copy_json
from instar.tools.reviewer.report import Damage
from tests.rehearsal.worlds import SIZE, crd, owned, rehearsed, version, widget, world


def _release(reason: str) -> Object:
    made = crd(version("v1", {"size": SIZE}))
    properties = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["status"] = {
        "type": "object",
        "default": {"phase": reason},
        "properties": {"phase": {"type": "string"}},
    }
    return made


OLD, NEW = _release("Waiting"), _release("Pending")
SPEC_OWNER = owned("helm", "v1", {"f:spec": {"f:size": {}}})
STATUS_OWNER = owned("controller", "v1", {"f:status": {"f:phase": {}}}, subresource="status")


def _objects(number: int, phase: str, *owners: Object) -> list[Object]:
    return [
        {
            **widget(each, "v1", {"size": each}, managedFields=copy_json(list(owners))),
            "status": {"phase": phase},
        }
        for each in range(number)
    ]


def _changed(objects: list[Object]) -> dict[Damage, int]:
    report = rehearsed(world(OLD, objects), NEW, faults=False)
    return dict(report.crds[0].steps[0].damages.counts)


def test_a_changed_default_inside_an_absent_status_is_foretold() -> None:
    assert _changed(_objects(4, "Waiting", SPEC_OWNER)) == {Damage.CHANGED: 4}


def test_a_status_with_an_owner_is_stored_and_stays() -> None:
    assert _changed(_objects(4, "Waiting", SPEC_OWNER, STATUS_OWNER)) == {}


def test_a_status_that_is_not_the_default_stays() -> None:
    assert _changed(_objects(4, "Ready", SPEC_OWNER)) == {}


def test_an_object_whose_fields_are_not_tracked_stays() -> None:
    assert _changed(_objects(4, "Waiting")) == {}
