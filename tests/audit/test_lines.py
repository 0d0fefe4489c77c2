"""Events as text: compared with what a kube-apiserver wrote (the reference's examples)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.kube.access.attributes import Attributes, User
from instar.kube.protobuf.envelope import wrap_message
from instar.server.audit.event_text import event_list, json_line, legacy_line
from instar.server.audit.policy import AuditDecision, AuditLevel, AuditStage
from instar.server.audit.request_record import (
    AuditEvent,
    RecordedBody,
    RequestRecord,
    go_duration,
    shown_agent,
    source_addresses,
)
from instar.server.audit.sinks import shown_line

ADMIN = User("admin", ("system:masters", "system:authenticated"), "admin-uid")
BOB = User("bob", ("devs", "qa", "system:authenticated"))
ALLOWED = {"authorization.k8s.io/reason": "", "authorization.k8s.io/decision": "allow"}
RECEIVED, STAGED = 1794754810.611829, 1794754810.616037


def wrapped_kind(api_version: str, kind: str) -> bytes:
    return wrap_message(api_version, kind, b"")[4:]


def trail(level: AuditLevel, asked: Attributes, **more: Any) -> RequestRecord:
    given: dict[str, Any] = {"id": "T", "uri": "/x", "bare": False, **more}
    return RequestRecord(
        AuditDecision(level, frozenset(), given["bare"]),
        given["id"],
        given["uri"],
        asked,
        ("127.0.0.1",),
        "x",
        RECEIVED,
    )


def at(
    found: RequestRecord, stage: AuditStage = AuditStage.COMPLETE, *, code: int = 200, **more: Any
) -> AuditEvent:
    event = found.at(stage, STAGED, ALLOWED, {"code": code}, **more)
    assert event is not None
    return event


def parsed(event: AuditEvent) -> Any:
    line = json_line(event)
    assert line is not None
    return json.loads(line)


def test_a_creation_reads_as_upstream_wrote_it() -> None:
    asked = Attributes(ADMIN, "create", "", "v1", "secrets", "", "default")
    uri = "/api/v1/namespaces/default/secrets"
    found = trail(AuditLevel.METADATA, asked, id="T-create-meta", uri=uri)
    found.record_body({"metadata": {"name": "sec1"}, "data": {"a": "b"}})

    assert json_line(at(found, code=201)) == (
        b'{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata",'
        b'"auditID":"T-create-meta","stage":"ResponseComplete",'
        b'"requestURI":"/api/v1/namespaces/default/secrets","verb":"create",'
        b'"user":{"username":"admin","uid":"admin-uid",'
        b'"groups":["system:masters","system:authenticated"]},"sourceIPs":["127.0.0.1"],'
        b'"userAgent":"x","objectRef":{"resource":"secrets","namespace":"default","name":"sec1",'
        b'"apiVersion":"v1"},"responseStatus":{"metadata":{},"code":201},'
        b'"requestReceivedTimestamp":"2026-11-15T15:00:10.611829Z",'
        b'"stageTimestamp":"2026-11-15T15:00:10.616037Z",'
        b'"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":""}}'
    )


def test_the_older_line_reads_as_upstream_wrote_it() -> None:
    asked = Attributes(BOB, "get", path="/version")

    line = legacy_line(at(trail(AuditLevel.METADATA, asked, uri="/version")))

    assert line == (
        b'2026-11-15T15:00:10.616037Z AUDIT: id="T" stage="ResponseComplete" ip="127.0.0.1" '
        b'method="get" user="bob" groups="\\"devs\\",\\"qa\\",\\"system:authenticated\\"" '
        b'as="<self>" asgroups="<lookup>" user-agent="x" namespace="<none>" uri="/version" '
        b'response="200"'
    )


def test_the_audit_level_decides_how_much_is_recorded() -> None:
    asked = Attributes(BOB, "update", "ex.io", "v1", "foos", "", "d", "f")
    body = {"metadata": {"name": "f", "uid": "u", "resourceVersion": "7"}, "spec": {"a": "<&>"}}
    sent = RecordedBody("application/json", (b'{"spec":', b'{"a":"<&>"}}\n'))
    told = {}
    for level in (AuditLevel.METADATA, AuditLevel.REQUEST, AuditLevel.REQUEST_RESPONSE):
        found = trail(level, asked)
        found.record_body(body)
        told[level] = parsed(at(found, response=sent))

    assert "requestObject" not in told[AuditLevel.METADATA]
    assert told[AuditLevel.REQUEST]["requestObject"] == body
    assert "responseObject" not in told[AuditLevel.REQUEST]
    assert told[AuditLevel.REQUEST_RESPONSE]["responseObject"] == {"spec": {"a": "<&>"}}
    assert told[AuditLevel.METADATA]["objectRef"] == {
        "resource": "foos",
        "namespace": "d",
        "name": "f",
        "uid": "u",
        "apiGroup": "ex.io",
        "apiVersion": "v1",
        "resourceVersion": "7",
    }


@pytest.mark.parametrize(
    ("level", "told"),
    [(AuditLevel.METADATA, False), (AuditLevel.REQUEST, True)],
    ids=["metadata", "request"],
)
def test_changes_by_webhooks_are_recorded_only_at_levels_with_content(
    level: AuditLevel, told: bool
) -> None:
    patch = "patch.webhook.admission.k8s.io/round_0_index_0"
    mutation = "mutation.webhook.admission.k8s.io/round_0_index_0"
    said = {mutation: "{}", patch: '{"patch":[{"op":"add","path":"/data/token","value":"s"}]}'}
    found = trail(level, Attributes(User("jane"), "create", resource="secrets"))

    event = found.at(AuditStage.COMPLETE, STAGED, said, {"code": 201})

    assert event is not None
    assert mutation in event.annotations
    assert (patch in event.annotations) is told


def test_the_first_event_has_no_body_however_late_it_is_written() -> None:
    found = trail(AuditLevel.REQUEST, Attributes(BOB, "create", "", "v1", "secrets", "", "d"))
    early = found.at(AuditStage.RECEIVED, RECEIVED, {})
    found.record_body({"metadata": {"name": "late"}})
    assert early is not None

    told = parsed(early)

    assert "requestObject" not in told
    assert "name" not in told["objectRef"]
    assert told["stageTimestamp"] == told["requestReceivedTimestamp"]


def test_managed_fields_are_left_out_of_objects_and_items() -> None:
    asked = Attributes(BOB, "list", "", "v1", "pods", "", "d")
    metadata = {"name": "a", "managedFields": [{}]}
    data = json.dumps({"metadata": metadata, "items": [{"metadata": metadata}]}).encode()
    found = trail(AuditLevel.REQUEST_RESPONSE, asked, bare=True)

    told = parsed(at(found, response=RecordedBody("application/json", (data,))))

    bare = {"metadata": {"name": "a"}}
    assert told["responseObject"] == {**bare, "items": [bare]}


def test_patches_are_recorded_unchanged_and_applied_yaml_as_json() -> None:
    asked = Attributes(BOB, "patch", "", "v1", "pods", "", "d", "p")
    patch, applied = trail(AuditLevel.REQUEST, asked), trail(AuditLevel.REQUEST, asked)
    patch.came("application/json-patch+json", b'[{"op":"remove","path":"/a"}]')
    applied.came("application/apply-patch+yaml", b"metadata:\n  name: p\n")

    assert parsed(at(patch))["requestObject"] == [{"op": "remove", "path": "/a"}]
    assert parsed(at(applied))["requestObject"] == {"metadata": {"name": "p"}}


def test_delete_options_say_what_they_are() -> None:
    asked = Attributes(BOB, "delete", "", "v1", "pods", "", "d", "p")
    found = trail(AuditLevel.REQUEST, asked)
    found.came("application/json", b'{"propagationPolicy":"Orphan"}')

    assert parsed(at(found))["requestObject"] == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Orphan",
    }


def test_a_watch_never_tells_what_was_sent() -> None:
    asked = Attributes(BOB, "watch", "", "v1", "pods", "", "d")

    event = at(
        trail(AuditLevel.REQUEST_RESPONSE, asked),
        response=RecordedBody("application/json", (b"{}",)),
    )

    assert "responseObject" not in parsed(event)


@pytest.mark.parametrize("asked_end", [b"", b"\n "], ids=["as it came", "decoded"])
@pytest.mark.parametrize("told_end", [b"", b"\n "], ids=["as it is sent", "decoded"])
def test_an_object_deeper_than_a_body_may_be_is_recorded(asked_end: bytes, told_end: bytes) -> None:
    """orjson encodes 254 levels; a list of objects that are as deep as a body may be has more."""
    deep = b'{"a":' * 300 + b'%b"<"' + b"}" * 300
    found = trail(AuditLevel.REQUEST_RESPONSE, Attributes(BOB, "create", "ex.io", "v1", "foos"))
    found.came("application/json", deep % asked_end)
    event = at(found, response=RecordedBody("application/json", (deep % told_end,)))

    line = json_line(event)

    assert line is not None
    told = json.loads(line)
    assert told["requestObject"] == told["responseObject"] == json.loads(deep % b"")
    assert b"<" not in line


def test_an_event_that_is_too_large_loses_its_objects_and_says_so() -> None:
    asked = Attributes(BOB, "create", "", "v1", "pods", "", "d")
    found = trail(AuditLevel.REQUEST, asked)
    found.record_body({"metadata": {"name": "p"}, "data": "x" * 2000})

    short = json_line(at(found), most=1500)

    assert short is not None
    assert "requestObject" not in json.loads(short)
    assert json.loads(short)["annotations"]["audit.k8s.io/truncated"] == "true"
    assert json.loads(short)["level"] == "Request"
    assert json_line(at(found), most=100) is None


def test_a_slow_request_says_how_long_it_took() -> None:
    asked = Attributes(BOB, "list", "", "v1", "pods")
    slow = trail(AuditLevel.METADATA, asked).at(
        AuditStage.COMPLETE, RECEIVED + 1.25, {}, {"code": 200}
    )
    assert slow is not None

    assert parsed(slow)["annotations"] == {"apiserver.latency.k8s.io/total": "1.25s"}


def test_items_of_a_list_carry_no_kind() -> None:
    line = json_line(at(trail(AuditLevel.METADATA, Attributes(BOB, "get", path="/x"))), typed=False)
    assert line is not None

    found = json.loads(event_list([line, line]))

    assert (found["kind"], found["metadata"], len(found["items"])) == ("EventList", {}, 2)
    assert "kind" not in found["items"][0]


def test_sources_are_listed_as_upstream_does() -> None:
    assert source_addresses("10.0.0.1, nonsense, 10.0.0.2", "10.0.0.3", "127.0.0.1") == (
        "10.0.0.1",
        "10.0.0.2",
        "10.0.0.3",
        "127.0.0.1",
    )
    assert source_addresses("127.0.0.1", "127.0.0.1", "127.0.0.1") == ("127.0.0.1",)
    assert source_addresses("", "", "::1") == ("::1",)


def test_durations_and_agents_are_written_as_go_does() -> None:
    assert [go_duration(value) for value in (0.6, 19.995379, 62.5, 3661.0)] == [
        "600ms",
        "19.995379s",
        "1m2.5s",
        "1h1m1s",
    ]
    assert shown_agent("a" * 2000) == "a" * 1024 + "...TRUNCATED"


@given(st.binary(max_size=300), st.sampled_from(["json", "yaml", "vnd.kubernetes.protobuf", "x"]))
def test_any_body_makes_one_line_of_json(body: bytes, media: str) -> None:
    asked = Attributes(BOB, "patch", "", "v1", "pods", "", "d", "p")
    found = trail(AuditLevel.REQUEST_RESPONSE, asked)
    found.came(f"application/{media}", body)

    line = json_line(at(found, response=RecordedBody(f"application/{media}", (body,))))

    assert line is not None
    assert b"\n" not in line
    json.loads(line)


MEDIA = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "text/nope",
        "",
    ]
)
HOSTILE = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [
            b'{"a":"\\ud800"}',
            b"[" * 5_000,
            b'{"a":' * 5_000,
            b"- " * 5_000,
            b'{"a":' * 300 + b"1" + b"}" * 300,
            b'{"a":' * 300 + b"\n 1" + b"}" * 300,
            b"&a [*a]",
            b"? {}",
            b"k8s\x00" + wrapped_kind("no.such/v1", "Unheard"),
            b"k8s\x00" + wrapped_kind("", ""),
            b"k8s\x00\xff\xff\xff\xff\xff",
            b"k8s\x00",
            b"",
        ]
    ),
)


@given(MEDIA, HOSTILE, MEDIA, HOSTILE, st.booleans(), st.sampled_from(["create", "delete"]))
def test_any_request_and_response_make_an_event(
    asked_media: str, asked: bytes, told_media: str, told: bytes, bare: bool, verb: str
) -> None:
    of = Attributes(BOB, verb, "ex.io", "v1", "foos", "", "d", "f")
    found = trail(AuditLevel.REQUEST_RESPONSE, of, bare=bare)
    found.came(asked_media, asked)
    event = at(found, response=RecordedBody(told_media, (told,)))

    line = shown_line(event, "audit-log", typed=True, most=0)

    assert line is not None
    assert b"\n" not in line
    assert json.loads(line)["auditID"] == "T"
    assert b"audit.k8s.io/truncated" not in line
