"""What an aggregation layer and its clients rely on in a server behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tests.support.main_cluster import GROUP, REPORTS, Aggregated, aggregated, crd, report
from tests.support.server import Answer
from tests.support.waiting import eventually

_VERSION = f"/apis/{GROUP}/v1"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
_MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aggregated]:
    with aggregated(tmp_path_factory.mktemp("both")) as found:
        scaled = crd("scans", "Scan")
        scaled["spec"]["names"] |= {"shortNames": ["sc"], "categories": ["all"]}
        (version,) = scaled["spec"]["versions"]
        replicas = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
        version["subresources"] = {"scale": replicas, "status": {}}
        found.main.create_crd(scaled)
        found.serves(REPORTS)
        found.serves(f"{_VERSION}/scans")
        for name in ("a", "b", "c"):
            assert found.proxied("POST", REPORTS, report(name)).status == 201
        yield found


def _accepting(both: Aggregated, path: str, accept: str, **more: Any) -> Answer:
    return both.proxied("GET", path, headers=(("Accept", accept),), **more)


def _header(answer: Answer, name: str) -> str:
    return next((value for key, value in answer.headers if key.lower() == name), "")


def test_a_trailing_slash_is_no_redirect(both: Aggregated) -> None:
    assert both.proxied("GET", f"{_VERSION}/").status == 200


def test_parameters_come_in_any_order_and_encoding(both: Aggregated) -> None:
    """The proxy sorts them and writes ``watch`` as ``watch=``."""
    listed = both.proxied("GET", f"{REPORTS}?fieldSelector=metadata.name%3Da&limit=5")
    watched = both.proxied("GET", f"{REPORTS}?resourceVersion=0&timeoutSeconds=1&watch=")

    assert [item["metadata"]["name"] for item in listed.json["items"]] == ["a"]
    first = orjson.loads(watched.text.splitlines()[0])
    assert first["type"] == "ADDED"


def test_forwarding_headers_change_nothing(both: Aggregated) -> None:
    forwarded = (
        ("X-Forwarded-For", "192.0.2.1"),
        ("X-Forwarded-Host", "elsewhere.example.com"),
        ("X-Forwarded-Proto", "http"),
        ("X-Forwarded-Uri", "/elsewhere"),
    )

    plain = both.proxied("GET", f"{REPORTS}/a")
    told = both.proxied("GET", f"{REPORTS}/a", headers=forwarded)

    assert told.json == plain.json


def test_a_body_above_the_limit_is_413(both: Aggregated) -> None:
    large = {**report("large"), "filler": "x" * (4 << 20)}

    assert both.proxied("POST", REPORTS, large).status == 413


def test_a_refusal_reads_as_that_of_the_main_cluster(both: Aggregated) -> None:
    refused = both.proxied("GET", f"{REPORTS}/a", user="joe", groups=())

    assert refused.status == 403
    assert refused.json["message"].startswith(
        f'reports.{GROUP} "a" is forbidden: User "joe" cannot get resource "reports" in API group '
        f'"{GROUP}" in the namespace "default"'
    )


def test_aggregated_discovery_has_its_content_type_and_tag(both: Aggregated) -> None:
    found = _accepting(both, "/apis", _AGGREGATED.format("v2"))
    again = both.proxied(
        "GET",
        "/apis",
        headers=(
            ("Accept", _AGGREGATED.format("v2")),
            ("If-None-Match", _header(found, "etag")),
        ),
    )

    kind = _header(found, "content-type")
    assert "g=apidiscovery.k8s.io" in kind
    assert "as=APIGroupDiscoveryList" in kind
    assert again.status == 304


def test_unknown_forms_of_discovery_are_the_plain_one(both: Aggregated) -> None:
    accept = f"{_AGGREGATED.format('v9')},application/json"

    assert _accepting(both, "/apis", accept).json["kind"] == "APIGroupList"


def test_discovery_tells_everything_of_the_crds(both: Aggregated) -> None:
    document = _accepting(both, "/apis", _AGGREGATED.format("v2")).json
    (group,) = (item for item in document["items"] if item["metadata"]["name"] == GROUP)
    (version,) = group["versions"]
    scans = next(each for each in version["resources"] if each["resource"] == "scans")
    legacy = both.proxied("GET", _VERSION).json["resources"]

    assert (scans["scope"], scans["singularResource"]) == ("Namespaced", "scan")
    assert (scans["shortNames"], scans["categories"]) == (["sc"], ["all"])
    assert scans["responseKind"]["kind"] == "Scan"
    assert sorted(scans["verbs"]) == [
        *("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    ]
    assert {each["subresource"] for each in scans["subresources"]} == {"scale", "status"}
    scale = next(each for each in legacy if each["name"] == "scans/scale")
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")
    assert next(each for each in legacy if each["name"] == "reports")["storageVersionHash"]


def test_a_new_crd_is_in_discovery_once_it_is_served(both: Aggregated) -> None:
    both.main.create_crd(crd("audits", "Audit"))

    def told() -> bool:
        return any(
            each["name"] == "audits" for each in both.proxied("GET", _VERSION).json["resources"]
        )

    eventually(told)


def test_openapi_is_for_the_routed_group_and_cached_by_its_hash(both: Aggregated) -> None:
    aggregator = {"user": "system:aggregator", "groups": ()}
    second = both.proxied("GET", "/openapi/v2", **aggregator)  # type: ignore[arg-type]
    tag = (("If-None-Match", _header(second, "etag")),)
    unchanged = both.proxied("GET", "/openapi/v2", headers=tag, **aggregator)  # type: ignore[arg-type]
    third = both.proxied("GET", "/openapi/v3").json["paths"]
    link = third[f"apis/{GROUP}/v1"]["serverRelativeURL"]
    document = both.proxied("GET", link)
    schemas = document.json["components"]["schemas"]

    assert (second.status, unchanged.status) == (200, 304)
    assert [path for path in third if path.startswith("apis/apps")] == []
    assert _header(document, "cache-control").startswith("public")
    kinds = [
        each
        for schema in schemas.values()
        for each in schema.get("x-kubernetes-group-version-kind", ())
    ]
    assert {"group": GROUP, "version": "v1", "kind": "Report"} in kinds
    assert "com.example.agg.v1.Report" in schemas


def test_tables_and_metadata_are_served_and_protobuf_of_objects_is_406(both: Aggregated) -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

    shown = _accepting(both, REPORTS, table)
    named = _accepting(both, REPORTS, metadata)
    whole = _accepting(both, REPORTS, "application/vnd.kubernetes.protobuf")

    assert shown.json["kind"] == "Table"
    assert _header(named, "content-type").startswith("application/vnd.kubernetes.protobuf")
    assert whole.status == 406


def test_lists_are_consistent_across_pages(both: Aggregated) -> None:
    first = both.proxied("GET", f"{REPORTS}?limit=1").json
    both.proxied("POST", REPORTS, report("between"))
    token = first["metadata"]["continue"]
    rest = both.proxied("GET", f"{REPORTS}?limit=500&continue={token}").json
    both.proxied("DELETE", f"{REPORTS}/between")

    assert first["metadata"]["remainingItemCount"] == 2
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "between" not in [item["metadata"]["name"] for item in rest["items"]]


def test_a_list_above_the_current_revision_is_a_timeout_that_may_be_repeated(
    both: Aggregated,
) -> None:
    late = both.proxied("GET", f"{REPORTS}?resourceVersion=999999999")

    assert late.status == 504
    (cause,) = late.json["details"]["causes"]
    assert cause["reason"] == "ResourceVersionTooLarge"
    assert late.json["details"]["retryAfterSeconds"] == 1


def test_an_update_with_a_foreign_revision_is_a_conflict(both: Aggregated) -> None:
    found = both.proxied("GET", f"{REPORTS}/a").json
    found["metadata"]["resourceVersion"] = "1"

    assert both.proxied("PUT", f"{REPORTS}/a", found).status == 409


def test_strict_validation_and_warnings_reach_the_client(both: Aggregated) -> None:
    unknown = {**report("strict"), "other": 1}

    refused = both.proxied("POST", f"{REPORTS}?fieldValidation=Strict", unknown)
    warned = both.proxied("POST", f"{REPORTS}?fieldValidation=Warn&dryRun=All", unknown)

    assert refused.status == 400
    assert _header(warned, "warning") == '299 - "unknown field \\"other\\""'


def test_a_watch_with_initial_events_ends_them_with_a_bookmark(both: Aggregated) -> None:
    query = (
        "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true"
        "&timeoutSeconds=1&watch=true"
    )
    lines = both.proxied("GET", f"{REPORTS}?{query}").text.splitlines()
    events = [orjson.loads(line) for line in lines]

    (mark,) = [index for index, event in enumerate(events) if event["type"] == "BOOKMARK"][:1]
    assert {event["type"] for event in events[:mark]} == {"ADDED"}
    annotations = events[mark]["object"]["metadata"]["annotations"]
    assert annotations["k8s.io/initial-events-end"] == "true"


def test_deletion_waits_for_finalizers_and_preconditions(both: Aggregated) -> None:
    held = report("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    made = both.proxied("POST", REPORTS, held).json
    other = {"preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}}

    refused = both.proxied("DELETE", f"{REPORTS}/held", other)
    uid = {"preconditions": {"uid": made["metadata"]["uid"]}, "propagationPolicy": "Foreground"}
    waiting = both.proxied("DELETE", f"{REPORTS}/held", uid).json
    both.proxied(
        "PATCH", f"{REPORTS}/held", {"metadata": {"finalizers": None}}, content_type=_MERGE
    )

    assert refused.status == 409
    assert "deletionTimestamp" in waiting["metadata"]
    assert sorted(waiting["metadata"]["finalizers"]) == ["example.com/hold", "foregroundDeletion"]
    assert both.proxied("GET", f"{REPORTS}/held").status == 404
