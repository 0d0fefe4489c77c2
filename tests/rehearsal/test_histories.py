"""Real histories with generated objects and recorded clients, where the corpus is at hand."""

from __future__ import annotations

from instar.base.json_values import Object
from instar.sdk import Converter
from instar.tools.rehearsal.converting import Converting
from instar.tools.rehearsal.go_no_go import decide
from instar.tools.rehearsal.model import ClientStanding, CrdRehearsal, Rehearsal, StepKind
from instar.tools.rehearsal.run import RehearsalOptions, RehearsalRelease, rehearse
from instar.tools.reviewer.witnesses.samples import Samples
from instar.tools.snapshots.captured_cluster import CapturedCluster, RecordedUse
from instar.tools.snapshots.manifest import CRDS, objects_of
from tests.rehearsal.worlds import part
from tests.reviewer.corpus import crds
from tests.support.corpus import CORPUS, needs_corpus

pytestmark = needs_corpus

relabelling = Converter(
    "Certificate", group="cert-manager.io", versions=("v1alpha2", "v1alpha3", "v1beta1", "v1")
)
"""Minimal certificates say the same at all of these versions but for their privateKey."""
for _old in ("v1alpha2", "v1alpha3", "v1beta1"):
    relabelling.between(_old, "v1", rules=[])


def _generated(crd: Object, number: int) -> list[Object]:
    """Objects that fit the storage version's schema."""
    spec = crd["spec"]
    (storage,) = [each for each in spec["versions"] if each["storage"]]
    made = Samples().minimal(storage["schema"]["openAPIV3Schema"])
    body = {key: value for key, value in made.items() if key in ("spec", "status")}
    place = {"namespace": "default"} if spec["scope"] == "Namespaced" else {}
    return [
        {
            "apiVersion": f"{spec['group']}/{storage['name']}",
            "kind": spec["names"]["kind"],
            "metadata": {"name": f"made-{each}", **place},
            **body,
        }
        for each in range(number)
    ]


def _rehearsed(
    project: str, old: str, new: str, name: str, asked: tuple[str, ...], converter: str = ""
) -> tuple[Rehearsal, CrdRehearsal]:
    before = crds(CORPUS / project / old)[name]
    after = crds(CORPUS / project / new)[name]
    plural, _, group = name.partition(".")
    uses = [RecordedUse(group, plural, at, "list", "ci", f"client-{at}", 1, "", "") for at in asked]
    made = _generated(before, 3)
    captured = CapturedCluster(old, [part(CRDS, [before]), part(objects_of(name), made)], uses=uses)
    converting = Converting({name: converter} if converter else {}, {})
    options = RehearsalOptions(converting, sample=3)
    report = rehearse(captured, [RehearsalRelease(new, {name: after})], options, lambda *_: None)
    return report, report.crds[0]


def _standing(found: CrdRehearsal, client: str) -> ClientStanding:
    return found.steps[-1].clients[f"{client} (ci)"].standing


def test_cert_manager_1_6_stops_serving_what_some_still_ask_for() -> None:
    report, found = _rehearsed(
        "cert-manager", "v1.5.0", "v1.6.0", "certificates.cert-manager.io",
        ("v1alpha2", "v1"), f"{__name__}:relabelling",
    )  # fmt: skip

    assert [step.kind for step in found.steps] == [StepKind.UNSERVE]
    assert _standing(found, "client-v1alpha2") is ClientStanding.BROKEN
    assert _standing(found, "client-v1") is ClientStanding.UNAFFECTED
    assert not decide(report).go


def test_cert_manager_without_its_webhook_is_not_called_fine() -> None:
    report, _ = _rehearsed(
        "cert-manager", "v1.5.0", "v1.6.0", "issuers.cert-manager.io", ("v1alpha2",)
    )

    assert {"unknown", "broken"} <= {reason.word for reason in decide(report).reasons}


def test_flux_introduces_v1_and_migrates_stored_objects() -> None:
    report, found = _rehearsed(
        "flux-source", "v0.36.1", "v1.0.0", "gitrepositories.source.toolkit.fluxcd.io",
        ("v1beta2", "v1beta1"),
    )  # fmt: skip

    kinds = [step.kind for step in found.steps]
    assert kinds[:3] == [StepKind.SERVE, StepKind.FLIP, StepKind.MIGRATE]
    migration = next(step.migration for step in found.steps if step.migration)
    assert migration.counts["rewritten"] == 3
    assert _standing(found, "client-v1beta2") is not ClientStanding.BROKEN
    assert all(fault.recovered for fault in found.faults)
    assert report.objects == 3


def test_gateway_api_1_0_serves_v1_beside_what_was_there() -> None:
    report, found = _rehearsed(
        "gateway-api", "v0.8.1", "v1.0.0", "httproutes.gateway.networking.k8s.io", ("v1beta1",)
    )

    assert found.steps[0].kind is StepKind.SERVE
    assert "v1" in found.steps[0].title
    assert _standing(found, "client-v1beta1") is ClientStanding.UNAFFECTED
    assert decide(report).go
