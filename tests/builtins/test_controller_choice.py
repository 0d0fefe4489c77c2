"""``--controllers``: what runs besides kube-apiserver itself, and what a server is without it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.json_values import Object
from instar.cli.serving.controller_flags import add_controller_arguments, controllers
from instar.cli.shared.failure import CliFailure
from instar.server.registry.controllers.controller_names import (
    CONTROLLERS_HERE,
    GARBAGE,
    NAMESPACES,
    QUOTAS,
    chosen_controllers,
)
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"
QUOTA_PATH = "/api/v1/namespaces/default/resourcequotas"


def read(*words: str) -> frozenset[str]:
    parser = argparse.ArgumentParser()
    add_controller_arguments(parser)
    return controllers(parser.parse_args(words))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], CONTROLLERS_HERE),
        (["--controllers=*"], CONTROLLERS_HERE),
        (["--controllers="], frozenset()),
        (["--controllers=*,-garbage-collector-controller"], CONTROLLERS_HERE - {GARBAGE}),
        (["--controllers=-garbagecollector,*"], CONTROLLERS_HERE - {GARBAGE}),
        (["--controllers=namespace, quota"], frozenset({NAMESPACES, QUOTAS})),
        (["--controllers=namespace", "--controllers=quota"], frozenset({NAMESPACES, QUOTAS})),
        (["--controllers=deployment,statefulset-controller"], frozenset()),
        (["--controllers=-namespace"], frozenset()),
    ],
)
def test_the_flag_has_kube_controller_managers_words(
    words: list[str], found: frozenset[str]
) -> None:
    assert read(*words) == found


@pytest.mark.parametrize("word", ["nope", "-nope", "-*"])
def test_an_unknown_controller_is_refused(word: str) -> None:
    with pytest.raises(CliFailure, match="is not in the list of known controllers") as caught:
        read(f"--controllers={word}")

    assert caught.value.code == 2


_WORDS = st.lists(st.sampled_from(["*", *CONTROLLERS_HERE, *(f"-{n}" for n in CONTROLLERS_HERE)]))


@given(_WORDS)
def test_the_first_entry_for_a_controller_wins_and_the_star_stands_for_the_rest(
    words: list[str],
) -> None:
    found = chosen_controllers(words)

    for name in CONTROLLERS_HERE:
        said = [word for word in words if word.removeprefix("-") == name]
        assert (name in found) == (said[0] == name if said else "*" in words)


@pytest.fixture(scope="module")
def alone() -> Iterator[LiveServer]:
    """A server as ``instar envtest`` starts it."""
    with live_server(storage="memory:", bootstrap_objects=True, controllers=frozenset()) as server:
        yield server


def make(server: LiveServer, path: str, name: str, **rest: Any) -> Object:
    answer = server.request("POST", path, {"metadata": {"name": name}, **rest})
    assert answer.status == 201, answer.json
    return dict(answer.json)


def test_the_initial_namespaces_and_objects_of_the_server_itself_are_there(
    alone: LiveServer,
) -> None:
    listed = alone.request("GET", "/api/v1/namespaces").json["items"]
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical"
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles/{}"

    assert {item["metadata"]["name"] for item in listed} >= {
        *("default", "kube-system", "kube-public", "kube-node-lease")
    }
    eventually(lambda: alone.request("GET", classes).status == 200 or None)
    assert alone.request("GET", roles.format("cluster-admin")).status == 200
    assert not alone.request("GET", roles.format("view")).json.get("rules")


def test_a_namespace_gets_no_account_and_no_authority(alone: LiveServer) -> None:
    make(alone, "/api/v1/namespaces", "bare")
    version = "/apis/apiregistration.k8s.io/v1/apiservices/v1."
    eventually(lambda: alone.request("GET", version).status == 200 or None)  # made last

    for plural in ("serviceaccounts", "configmaps"):
        for namespace in ("bare", "default"):
            found = alone.request("GET", f"/api/v1/namespaces/{namespace}/{plural}").json
            assert found["items"] == []


def test_a_deleted_namespace_stays_until_its_client_finalizes_it(alone: LiveServer) -> None:
    make(alone, "/api/v1/namespaces", "leaving")
    make(alone, CONFIG_MAPS.format("leaving"), "kept")

    deleted = alone.request("DELETE", "/api/v1/namespaces/leaving")
    found = alone.request("GET", "/api/v1/namespaces/leaving").json
    kept = alone.request("GET", f"{CONFIG_MAPS.format('leaving')}/kept")
    refused = alone.request("POST", CONFIG_MAPS.format("leaving"), {"metadata": {"name": "late"}})

    assert deleted.status == 200
    assert found["status"]["phase"] == "Terminating"
    assert found["spec"]["finalizers"] == ["kubernetes"]
    assert kept.status == 200
    assert refused.json["details"]["causes"][0]["reason"] == "NamespaceTerminating"

    found["spec"]["finalizers"] = []
    finalized = alone.request("PUT", "/api/v1/namespaces/leaving/finalize", found)

    assert finalized.status == 200, finalized.json
    assert alone.request("GET", "/api/v1/namespaces/leaving").status == 404


def test_dependents_stay_when_their_owner_goes(alone: LiveServer) -> None:
    path = CONFIG_MAPS.format("default")
    uid = make(alone, path, "owner")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    made = {"metadata": {"name": "dependent", "ownerReferences": [owner]}}
    assert alone.request("POST", path, made).status == 201

    alone.request("DELETE", f"{path}/owner")
    make(alone, path, "later")

    assert alone.request("GET", f"{path}/dependent").status == 200


def test_a_quota_without_status_limits_nothing(alone: LiveServer) -> None:
    make(alone, QUOTA_PATH, "none", spec={"hard": {"secrets": "0"}})

    make(alone, "/api/v1/namespaces/default/secrets", "free")

    assert not alone.request("GET", f"{QUOTA_PATH}/none").json.get("status")


def test_a_quota_limits_what_its_status_says_and_counts_what_it_allows(alone: LiveServer) -> None:
    path = "/api/v1/namespaces/default/services"
    quota = make(alone, QUOTA_PATH, "one", spec={"hard": {"services": "2"}})
    quota["status"] = {"hard": {"services": "2"}}
    unknown = alone.request("PUT", f"{QUOTA_PATH}/one/status", quota).json
    service = {"spec": {"ports": [{"port": 80}]}}
    early = alone.request("POST", path, {"metadata": {"name": "early"}, **service})
    unknown["status"]["used"] = {"services": "1"}
    alone.request("PUT", f"{QUOTA_PATH}/one/status", unknown)

    dry = alone.request("POST", f"{path}?dryRun=All", {"metadata": {"name": "a"}, **service})
    make(alone, path, "a", **service)
    used = alone.request("GET", f"{QUOTA_PATH}/one").json["status"]["used"]
    over = alone.request("POST", path, {"metadata": {"name": "b"}, **service})

    assert early.status == 403
    assert early.json["message"] == (
        'services "early" is forbidden: status unknown for quota: one, resources: services'
    )
    assert dry.status == 201
    assert used == {"services": "2"}
    assert over.json["message"] == (
        'services "b" is forbidden: exceeded quota: one, requested: services=1, '
        "used: services=2, limited: services=2"
    )
