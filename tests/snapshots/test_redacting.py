"""Redacted values are gone from everywhere, keep their type and shape, and still match."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.tools.snapshots.capture.pseudonyms import Pseudonyms
from instar.tools.snapshots.capture.redacting import Redaction, read_field

NAMES = Pseudonyms(b"0123456789abcdef")
LEAF = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
)
JSON = LEAF | st.lists(LEAF, max_size=3) | st.dictionaries(st.text(max_size=3), LEAF, max_size=3)


def redaction(*fields: str, secrets: bool = True) -> Redaction:
    return Redaction(NAMES, tuple(read_field(text) for text in fields), secrets)


@given(JSON)
def test_a_pseudonym_has_the_type_of_its_value_and_is_stable(value: Any) -> None:
    found = NAMES.of(value)

    assert type(found) is type(value)
    assert found == NAMES.of(value)


@given(st.text())
def test_a_pseudonym_has_the_shape_of_its_value(value: str) -> None:
    found = NAMES.of(value)

    assert [_class(character) for character in found] == [_class(character) for character in value]


@given(st.lists(st.text("ab1", max_size=3), unique=True))
def test_two_values_never_share_a_pseudonym(values: list[str]) -> None:
    assert len({NAMES.of(value) for value in values}) == len(values)


def test_numbers_keep_sign_and_digits_and_do_not_meet() -> None:
    found = [NAMES.of(number) for number in range(-999, 1000)]

    assert len(set(found)) == len(found)
    assert all(
        len(str(number)) == len(str(other)) or number == 0 or other == 0
        for number, other in zip(range(-999, 1000), found, strict=True)
    )


def test_another_key_gives_other_pseudonyms() -> None:
    assert NAMES.of("a-password-of-some-length") != Pseudonyms(b"x" * 16).of(
        "a-password-of-some-length"
    )


def test_chosen_fields_are_replaced_and_nothing_else() -> None:
    obj = _widget()

    found = redaction("spec.password", "spec.users[*].name", "spec.map.*").redact(obj, "w.x.io")

    text = orjson.dumps(found).decode()
    assert not [word for word in ("hunter2", "alice", "valueone") if word in text]
    assert found["spec"]["size"] == 3
    assert list(found["spec"]["map"]) == ["one"]
    assert obj["spec"]["password"] == "hunter2"


def test_copies_of_a_value_match_it() -> None:
    found = redaction("spec.password", "spec.users[*].name").redact(_widget(), "w.x.io")

    applied = json.loads(found["metadata"]["annotations"][_LAST])
    assert applied["spec"]["password"] == found["spec"]["password"]
    (key,) = found["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:users"]
    assert json.loads(key[2:]) == {"name": found["spec"]["users"][0]["name"]}


def test_a_field_of_one_crd_is_left_alone_elsewhere() -> None:
    field = redaction("widgets.x.io=spec.password")

    assert field.redact(_widget(), "gadgets.x.io") == _widget()
    assert field.redact(_widget(), "widgets.x.io") != _widget()


def test_values_of_secrets_are_dropped_by_default() -> None:
    secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {}, "data": {"a": "aHVudGVyMg=="}}

    assert redaction().redact(secret, "secrets")["data"] == {"a": ""}
    assert redaction(secrets=False).redact(secret, "secrets") == secret


@pytest.mark.parametrize(
    "body",
    [
        {"spec": {"password": "hunter2"}},
        [{"op": "replace", "path": "/spec/password", "value": "hunter2"}],
        [{"op": "replace", "path": "/spec", "value": {"password": "hunter2"}}],
    ],
)
def test_bodies_in_audit_events_are_redacted(body: Any) -> None:
    event = {"verb": "patch", "requestObject": body, "objectRef": {"name": "w"}}

    found = redaction("spec.password").event(event, "widgets.x.io")

    assert "hunter2" not in orjson.dumps(found).decode()
    assert found["verb"] == "patch"


def test_a_redacted_name_is_redacted_in_events_too() -> None:
    event = {"requestURI": "/apis/x.io/v1/widgets/carol", "objectRef": {"name": "carol"}}

    found = redaction("metadata.name").event(event, "widgets.x.io")

    assert "carol" not in orjson.dumps(found).decode()
    assert found["objectRef"]["name"] == NAMES.of("carol")


@pytest.mark.parametrize("text", ["", "spec..x", "=spec.x", "a=", "spec[0]"])
def test_an_invalid_field_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_field(text)


_LAST = "kubectl.kubernetes.io/last-applied-configuration"


def _widget() -> dict[str, Any]:
    spec = {
        "password": "hunter2",
        "size": 3,
        "users": [{"name": "alice"}],
        "map": {"one": "valueone"},
    }
    users: dict[str, Any] = {'k:{"name":"alice"}': {"f:name": {}}}
    return {
        "kind": "Widget",
        "apiVersion": "x.io/v1",
        "metadata": {
            "name": "w",
            "annotations": {_LAST: json.dumps({"spec": spec})},
            "managedFields": [{"fieldsV1": {"f:spec": {"f:users": users}}}],
        },
        "spec": spec,
    }


def _class(character: str) -> str:
    if not character.isascii():
        return character
    if character.isdigit():
        return "1"
    if character.isalpha():
        return "a" if character.islower() else "A"
    return character
