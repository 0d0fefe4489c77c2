"""Every message a real server and a real Go client sent: read, and written again byte for byte."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
import yaml

from instar.kube.protobuf.envelope import decode_object, encode_list, encode_message, encode_object
from instar.kube.protobuf.errors import ProtobufError
from instar.kube.protobuf.watch import decode_frame, frames, watch_frame
from tests.support.builtins import BUILTINS, Line, recorded
from tests.support.shared import demand_shared

AS_THE_CLIENT_SPACED_IT = {"client.crd.create"}
"""Raw JSON travels as it was typed, with spaces; plain values cannot tell."""
ONLY_JSON_SAYS = {
    "get.statefulset.rich": "types of volumeClaimTemplates are no part of the message",
    "get.list.pods.empty": "an empty list is [] from a server and null where it is decoded",
}


def told_both_ways(line: Line) -> bool:
    return isinstance(line.get("json"), dict) and "protobuf" in line and "kind" in line["json"]


def exchanges(line: Line) -> list[tuple[dict[str, Any], bytes]]:
    """The pairs of JSON and bytes of a call of the Go client."""
    return [
        (line[f"{part}JSON"], b64decode(line[f"{part}Protobuf"]))
        for part in ("request", "answer")
        if f"{part}Protobuf" in line
    ]


@pytest.mark.parametrize("line", recorded("protobuf", told_both_ways))
def test_json_is_written_as_upstream_writes_it(line: Line) -> None:
    assert encode_object(line["json"]) == b64decode(line["protobuf"])


def answered(line: Line) -> bool:
    return line["direction"] == "response" and told_both_ways(line)


@pytest.mark.parametrize("line", recorded("protobuf", answered))
def test_a_message_is_read_as_the_json_upstream_answers(line: Line) -> None:
    found = decode_object(b64decode(line["protobuf"]))
    if line["id"] in ONLY_JSON_SAYS:
        assert encode_object(found) == encode_object(line["json"])
    else:
        assert found == line["json"]


@pytest.mark.parametrize("line", recorded("protobuf", lambda line: line["direction"] == "encode"))
def test_recorded_client_messages_can_be_decoded_and_encoded(line: Line) -> None:
    body = b64decode(line["protobuf"])
    found = decode_object(body)
    assert encode_object(found) == body
    if "jsonAfterDecode" in line:
        assert found["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == line["jsonAfterDecode"]


def test_a_large_crd_of_the_corpus() -> None:
    (param,) = recorded("protobuf", lambda line: line["id"] == "enc.crd.httproute")
    (line,) = param.values
    path = BUILTINS.parents[1] / "corpus/gateway-api/v1.4.0"
    path /= "gateway.networking.k8s.io_httproutes.yaml"
    demand_shared(path)
    crd = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    del crd["status"]
    assert encode_object(crd) == b64decode(line["protobuf"])


def by_go_client(line: Line) -> bool:
    return bool(line["direction"] == "clientgo")


@pytest.mark.parametrize("line", recorded("protobuf", by_go_client))
def test_calls_of_the_go_client(line: Line) -> None:
    for content, body in exchanges(line):
        assert decode_object(body) == content
        if line["id"] not in AS_THE_CLIENT_SPACED_IT:
            assert encode_object(content) == body


def only_bytes(line: Line) -> bool:
    return "bodyB64" in line or ("protobuf" in line and not told_both_ways(line))


@pytest.mark.parametrize("line", recorded("protobuf", only_bytes))
def test_answers_of_all_kinds_survive_reading_and_writing(line: Line) -> None:
    body = b64decode(line.get("bodyB64") or line["protobuf"])
    assert encode_object(decode_object(body)) == body


def accepted(line: Line) -> bool:
    return "requestB64" in line and line["status"] in (200, 201)


@pytest.mark.parametrize("line", recorded("protobuf", accepted))
def test_bodies_a_server_takes(line: Line) -> None:
    kind = "ConfigMap" if line["method"] == "POST" else "DeleteOptions"
    found = decode_object(b64decode(line["requestB64"]), "v1", kind)
    assert found["kind"] == kind
    if kind == "ConfigMap":
        assert found["metadata"]["name"] == line["body"]["metadata"]["name"]
        assert found.get("data") == line["body"].get("data")


def refused(line: Line) -> bool:
    posted = line.get("requestContentType", "").endswith("protobuf")
    return posted and line["status"] == 400 and "unknown conversion" not in line["body"]["message"]


@pytest.mark.parametrize("line", recorded("protobuf", refused))
def test_bodies_a_server_refuses(line: Line) -> None:
    with pytest.raises(ProtobufError) as caught:
        decode_object(b64decode(line["requestB64"]), "v1", "ConfigMap")
    assert str(caught.value) in line["body"]["message"]


@pytest.mark.parametrize("line", recorded("protobuf", lambda line: "frames" in line))
def test_frames_of_a_watch(line: Line) -> None:
    parts = [b64decode(frame) for frame in line["frames"]]
    for part in parts:
        event = decode_frame(part)
        again = watch_frame(event["type"], encode_object(event["object"]))
        assert again == len(part).to_bytes(4, "big") + part
    if "stream" in line:
        assert list(frames(b64decode(line["stream"]))) == parts


def is_list(line: Line) -> bool:
    return told_both_ways(line) and line["json"]["kind"] in ("ConfigMapList", "PodList")


@pytest.mark.parametrize("line", recorded("protobuf", is_list))
def test_a_list_can_be_put_together_from_encoded_items(line: Line) -> None:
    listed = line["json"]
    version, kind = listed["apiVersion"], listed["kind"]
    items = [
        encode_message(version, kind.removesuffix("List"), item) for item in listed["items"] or ()
    ]
    found = encode_list(version, kind, listed["metadata"], items)
    assert found == b64decode(line["protobuf"])
