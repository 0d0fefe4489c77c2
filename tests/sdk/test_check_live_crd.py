"""``instar check --crd kube:NAME``, and the laws that came with it: labels and start-up."""

from __future__ import annotations

import pytest

from instar.base.json_values import Object
from instar.tools.sdk.checking.case import Uncheckable
from instar.tools.sdk.checking.definition import parse_crd
from instar.tools.sdk.checking.responders import webhook_of
from instar.tools.sdk.checking.startup import startup_outcomes
from tests.migrator.running import instar
from tests.migrator.support import crd, name_of, stale_crd
from tests.support.server import LiveServer
from tests.support.webhook import Webhook, relabel

QUICK = ("--examples", "15", "--seed", "1", "--no-progress")


def test_url_and_authority_come_from_the_crd(server: LiveServer) -> None:
    with Webhook() as hook:
        definition = crd(conversion=hook.conversion())
        server.create_crd(definition)
        done = instar(server, "check", "--crd", f"kube:{name_of(definition)}", *QUICK)

        assert done.returncode == 0, done.stdout + done.stderr
        assert hook.calls


def test_a_label_the_converter_does_not_know_is_missed(server: LiveServer) -> None:
    def dropping(obj: Object, wanted: str) -> Object:
        labels = {k: v for k, v in (obj["metadata"].get("labels") or {}).items() if k == "app"}
        return {**relabel(obj, wanted), "metadata": {**obj["metadata"], "labels": labels}}

    with Webhook(convert=dropping) as hook:
        definition = crd(conversion=hook.conversion())
        server.create_crd(definition)
        words = ("--laws", "contract,labels")
        done = instar(server, "check", "--crd", f"kube:{name_of(definition)}", *QUICK, *words)

    assert done.returncode == 1
    assert "labels or annotations are lost or changed at v1" in done.stdout
    assert "metadata.labels" in done.stdout


def test_a_controller_cannot_start_while_objects_are_stored_elsewhere(server: LiveServer) -> None:
    with Webhook() as hook:
        definition = stale_crd(server, 1, conversion=hook.conversion())
        name = name_of(definition)
        words = ("--crd", f"kube:{name}", "--laws", "total", *QUICK)
        before = instar(server, "check", *words)
        migrated = instar(server, "migrate", name)
        after = instar(server, "check", *words)

    assert before.returncode == 1
    assert "objects may be stored at v1beta1: listing them at v1 needs the webhook" in before.stdout
    assert f"run instar migrate {name}" in before.stdout
    assert migrated.returncode == 0
    assert after.returncode == 0, after.stdout


def test_a_controller_that_does_not_use_the_storage_version_needs_its_webhook_at_each_start() -> (
    None
):
    definition = crd(storage="v1", conversion=_service())

    (outcome,) = startup_outcomes(parse_crd(definition), "v1beta1")

    assert outcome.verdict == "broken"
    assert outcome.counterexample is not None
    assert "let the controller use v1, the storage version" in outcome.counterexample.message


def test_without_a_webhook_there_is_nothing_to_wait_for() -> None:
    assert startup_outcomes(parse_crd(crd(storage="v1")), "v1beta1") == []


def _service() -> Object:
    service = {"namespace": "ops", "name": "hook", "path": "/c", "port": 9443}
    return {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": service, "caBundle": "cGVt"},
            "conversionReviewVersions": ["v1"],
        },
    }


def test_a_service_is_called_by_its_name_in_the_cluster() -> None:
    found = webhook_of(parse_crd(crd(conversion=_service())))

    assert found == ("https://hook.ops.svc:9443/c", "pem")


def test_a_crd_without_a_webhook_is_reported() -> None:
    with pytest.raises(Uncheckable, match="has no conversion webhook"):
        webhook_of(parse_crd(crd()))


def test_a_service_out_of_reach_is_reached_through_another_address(server: LiveServer) -> None:
    with Webhook(hosts=("hook.ops.svc",)) as hook:
        conversion = _service()
        conversion["webhook"]["clientConfig"]["caBundle"] = hook.ca_bundle
        definition = crd(conversion=conversion)
        server.create_crd(definition)
        words = ("--crd", f"kube:{name_of(definition)}", "--laws", "total", *QUICK)
        done = instar(server, "check", *words, "--connect", f"127.0.0.1:{hook.port}")

    assert done.returncode == 0, done.stdout + done.stderr
