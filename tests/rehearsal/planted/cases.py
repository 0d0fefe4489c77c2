"""Upgrades whose breakage is known: what must be found, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from instar.base.json_values import Object
from instar.tools.rehearsal.model import ClientStanding, Fault, StepKind
from instar.tools.reviewer.report import Damage
from instar.tools.snapshots.captured_cluster import RecordedUse
from tests.rehearsal.worlds import GROUP, SIZE, TEXT, crd, owned, use, version, widget

SERVE, FLIP, MIGRATE = StepKind.SERVE, StepKind.FLIP, StepKind.MIGRATE
UNSERVE, REMOVE = StepKind.UNSERVE, StepKind.REMOVE
COLOURED = {"size": SIZE, "colour": TEXT}
WEBHOOK = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "prod", "name": "the-real-one"}},
    },
}
CLIENT = "argocd/v2 (ci)"
W0, W1, W2 = "default/w0", "default/w1", "default/w2"


@dataclass(frozen=True)
class Planted:
    name: str
    old: Object
    releases: tuple[Object, ...]
    objects: tuple[Object, ...]
    uses: tuple[RecordedUse, ...] = ()
    events: tuple[Object, ...] = ()
    converter: str = ""
    damages: Mapping[tuple[str, StepKind], Mapping[Damage, set[str]]] = field(default_factory=dict)
    """By release and step; exactly these."""
    clients: Mapping[str, Mapping[tuple[str, StepKind], ClientStanding]] = field(
        default_factory=dict
    )
    """Those that are not unaffected, at each step."""
    no_return: tuple[str, StepKind] | None = None
    faults: frozenset[Fault] = frozenset()
    """Those that do not recover."""
    words: frozenset[str] = frozenset()
    """The reasons not to go."""


def _three(at: str, *specs: Object, **metadata: Any) -> tuple[Object, ...]:
    given = specs or ({"size": 1}, {"size": 2}, {"size": 3})
    return tuple(widget(number, at, spec, **metadata) for number, spec in enumerate(given))


def _event(verb: str, at: str, name: str, body: Any, **more: Any) -> Object:
    path = f"/apis/{GROUP}/{at}/namespaces/default/widgets" + (f"/{name}" if name else "")
    about = {"apiGroup": GROUP, "apiVersion": at, "resource": "widgets", "namespace": "default"}
    return {
        "stage": "ResponseComplete",
        "verb": verb,
        "requestURI": path,
        "userAgent": "argocd/v2",
        "user": {"username": "ci"},
        "objectRef": {**about, **({"name": name} if name else {})},
        "requestObject": body,
        **more,
    }


APPLIED = owned("argocd", "v1beta1", {"f:spec": {"f:size": {}}}, "Apply")
GONE = {("r1", UNSERVE): ClientStanding.BROKEN, ("r1", REMOVE): ClientStanding.BROKEN}
OLD = crd(version("v1beta1", COLOURED))
BOTH = crd(version("v1", COLOURED), version("v1beta1", COLOURED))

CASES = (
    Planted(
        "a new optional field harms nobody",
        OLD,
        (crd(version("v1beta1", {**COLOURED, "shape": TEXT})),),
        _three("v1beta1"),
        uses=(use("v1beta1", "list"), use("v1beta1", "update"), use("v1beta1", "create")),
    ),
    Planted(
        "a version comes and the old one goes, with nobody left at it",
        OLD,
        (crd(version("v1", COLOURED)),),
        _three("v1beta1"),
    ),
    Planted(
        "a client lists at a version that goes",
        OLD,
        (crd(version("v1", COLOURED)),),
        _three("v1beta1"),
        uses=(use("v1beta1", "list"),),
        clients={CLIENT: GONE},
        words=frozenset({"broken"}),
    ),
    Planted(
        "a manager applies at a version that goes",
        OLD,
        (crd(version("v1", COLOURED)),),
        _three("v1beta1", managedFields=[APPLIED]),
        clients={"manager argocd (Apply)": GONE},
        words=frozenset({"broken"}),
    ),
    Planted(
        "a field leaves the schema, and one object has it",
        OLD,
        (crd(version("v1beta1", {"size": SIZE})),),
        _three("v1beta1", {"size": 1}, {"size": 2, "colour": "red"}, {"size": 3}),
        uses=(use("v1beta1", "get"),),
        damages={("r1", SERVE): {Damage.PRUNED: {W1}}},
        clients={CLIENT: {("r1", SERVE): ClientStanding.WARNED}},
        words=frozenset({"pruned"}),
    ),
    Planted(
        "a bound is tightened, and one object is beyond it",
        OLD,
        (crd(version("v1beta1", {**COLOURED, "size": {"type": "integer", "maximum": 2}})),),
        _three("v1beta1"),
        uses=(use("v1beta1", "update"),),
        damages={("r1", SERVE): {Damage.FROZEN: {W2}}},
        clients={CLIENT: {("r1", SERVE): ClientStanding.WARNED}},
    ),
    Planted(
        "a field becomes required, and its creator does not know it",
        OLD,
        (crd(version("v1beta1", COLOURED, required=["colour"])),),
        _three("v1beta1", {"size": 1, "colour": "red"}, {"size": 2}),
        uses=(use("v1beta1", "create"),),
        damages={("r1", SERVE): {Damage.FROZEN: {W1}}},
        clients={CLIENT: {("r1", SERVE): ClientStanding.BROKEN}},
        words=frozenset({"broken"}),
    ),
    Planted(
        "a rule about changes refuses even what does not change",
        OLD,
        (
            crd(
                version(
                    "v1beta1",
                    COLOURED,
                    **{
                        "x-kubernetes-validations": [
                            {"rule": "self.size > oldSelf.size + 1 || self.size < 3"}
                        ]
                    },
                )
            ),
        ),
        _three("v1beta1"),
        uses=(use("v1beta1", "patch"),),
        damages={("r1", SERVE): {Damage.INVALID: {W2}}},
        clients={CLIENT: {("r1", SERVE): ClientStanding.BROKEN}},
        words=frozenset({"broken", "invalid"}),
    ),
    Planted(
        "a default changes, and one object relied on it",
        crd(version("v1beta1", {"size": SIZE, "colour": {"type": "string", "default": "red"}})),
        (crd(version("v1beta1", {"size": SIZE, "colour": {"type": "string", "default": "blue"}})),),
        _three("v1beta1", {"size": 1, "colour": "green"}, {"size": 2}),
        damages={("r1", SERVE): {Damage.CHANGED: {W1}}},
    ),
    Planted(
        "the webhook refuses some objects",
        crd(version("v1beta1", COLOURED), conversion=WEBHOOK),
        (
            crd(
                version("v1", COLOURED),
                version("v1beta1", COLOURED),
                storage="v1beta1",
                conversion=WEBHOOK,
            ),
        ),
        _three("v1beta1", {"size": 2}, {"size": 3}, {"size": 4}),
        converter="choosy",
        damages={("r1", SERVE): {Damage.UNREADABLE: {W1}}},
        words=frozenset({"unreadable"}),
    ),
    Planted(
        "a rename is converted both ways",
        OLD,
        (
            crd(
                version("v1", {"size": SIZE, "color": TEXT}),
                version("v1beta1", COLOURED),
                conversion=WEBHOOK,
            ),
        ),
        _three("v1beta1", {"size": 1, "colour": "red"}, {"size": 2}),
        uses=(use("v1beta1", "list"), use("v1beta1", "update")),
        converter="honest",
    ),
    Planted(
        "the webhook forgets a field",
        OLD,
        (crd(version("v1", COLOURED), version("v1beta1", COLOURED), conversion=WEBHOOK),),
        _three("v1beta1", {"size": 1, "colour": "red"}, {"size": 2}),
        converter="forgetful",
        damages={
            ("r1", FLIP): {Damage.PRUNED: {W0}},
        },
        no_return=("r1", MIGRATE),
        faults=frozenset({Fault.BOTH_CONTROLLERS, Fault.MIGRATOR_KILLED}),
        words=frozenset({"pruned", "unmigrated", "fault"}),
    ),
    Planted(
        "a new version without a webhook has no place for a field",
        OLD,
        (crd(version("v1", {"size": SIZE}), version("v1beta1", COLOURED)),),
        _three("v1beta1", {"size": 1, "colour": "red"}, {"size": 2}),
        damages={("r1", SERVE): {Damage.PRUNED: {W0}}},
        no_return=("r1", MIGRATE),
        faults=frozenset({Fault.BOTH_CONTROLLERS, Fault.MIGRATOR_KILLED}),
        words=frozenset({"pruned", "unmigrated", "fault"}),
    ),
    Planted(
        "a version that objects' owners name goes without a migration",
        crd(version("v1", COLOURED), version("v1beta1", COLOURED), stored=["v1"]),
        (crd(version("v1", COLOURED)),),
        (
            widget(0, "v1", {"size": 1}, managedFields=[APPLIED]),
            widget(1, "v1", {"size": 2}),
        ),
        damages={("r1", REMOVE): {Damage.OWNERSHIP_LOST: {W0}}},
        clients={"manager argocd (Apply)": GONE},
        words=frozenset({"broken", "ownership-lost"}),
    ),
    Planted(
        "a version is deprecated",
        BOTH,
        (crd(version("v1", COLOURED), version("v1beta1", COLOURED, deprecated=True)),),
        _three("v1"),
        uses=(use("v1beta1", "list"), use("v1", "list", agent="new/v1")),
        clients={CLIENT: {("r1", SERVE): ClientStanding.WARNED}},
    ),
    Planted(
        "the server refuses the CRD",
        OLD,
        (crd(version("v1beta1", COLOURED), scope="Cluster"),),
        _three("v1beta1"),
        words=frozenset({"refused"}),
    ),
    Planted(
        "the second of two releases is the one that hurts",
        OLD,
        (
            crd(version("v1beta1", COLOURED), version("v1", COLOURED)),
            crd(
                version("v1beta1", COLOURED),
                version("v1", {**COLOURED, "size": {"type": "integer", "maximum": 2}}),
            ),
        ),
        _three("v1beta1"),
        damages={("r2", SERVE): {Damage.FROZEN: {W2}}},
    ),
    Planted(
        "nobody said who converts",
        crd(version("v1beta1", COLOURED), version("v1", COLOURED), conversion=WEBHOOK),
        (
            crd(
                version("v1beta1", {**COLOURED, "shape": TEXT}),
                version("v1", COLOURED),
                conversion=WEBHOOK,
            ),
        ),
        _three("v1beta1"),
        uses=(use("v1", "list"),),
        clients={CLIENT: {("r1", SERVE): ClientStanding.UNKNOWN}},
        words=frozenset({"unknown"}),
    ),
    Planted(
        "a recorded patch sets a value that is not allowed any more",
        OLD,
        (crd(version("v1beta1", {"size": SIZE, "colour": {"type": "string", "enum": ["red"]}})),),
        _three("v1beta1"),
        events=(_event("patch", "v1beta1", "w1", {"spec": {"colour": "mauve"}}),),
        clients={CLIENT: {("r1", SERVE): ClientStanding.BROKEN}},
        words=frozenset({"broken"}),
    ),
    Planted(
        "two controllers fight through a converter that is not stable",
        OLD,
        (crd(version("v1", COLOURED), version("v1beta1", COLOURED), conversion=WEBHOOK),),
        _three("v1beta1", {"size": 1}),
        converter="restless",
        damages={("r1", FLIP): {Damage.CHANGED: {W0}}},
        no_return=("r1", MIGRATE),
        faults=frozenset({Fault.BOTH_CONTROLLERS, Fault.MIGRATOR_KILLED}),
        words=frozenset({"unmigrated", "fault"}),
    ),
    Planted(
        "what was wrong before is nobody's fault",
        crd(version("v1beta1", {**COLOURED, "size": {"type": "integer", "maximum": 2}})),
        (
            crd(
                version(
                    "v1beta1",
                    {**COLOURED, "size": {"type": "integer", "maximum": 2}, "shape": TEXT},
                )
            ),
        ),
        _three("v1beta1"),
        uses=(use("v1beta1", "create"), use("v1beta1", "update")),
    ),
    Planted(
        "a list gets keys, and one object has an item twice",
        crd(version("v1beta1", {"tags": {"type": "array", "items": TEXT}})),
        (
            crd(
                version(
                    "v1beta1",
                    {"tags": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}},
                )
            ),
        ),
        _three("v1beta1", {"tags": ["a", "b"]}, {"tags": ["a", "a"]}),
        damages={("r1", SERVE): {Damage.FROZEN: {W1}}},
    ),
)
