"""Acting as somebody else: who may, as whom, and what is left of the one who asks."""

from __future__ import annotations

from typing import Any

import pytest

from instar.base.json_values import Object
from tests.rest.rbac import GROUP, as_, binding, given, guarded, role, rule, user
from tests.support.server import Answer, LiveServer

__all__ = ["given", "guarded"]

WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
MAPS = "/api/v1/namespaces/default/configmaps"


def whoami(server: LiveServer, headers: dict[str, str], who: str = "") -> Object:
    if who:
        answer = as_(server, who, "POST", WHOAMI, {}, headers=headers)
    else:
        answer = server.request("POST", WHOAMI, {}, headers=headers)
    assert answer.status == 201, answer.text
    info: Object = answer.json["status"]["userInfo"]
    return info


def refused(answer: Answer) -> str:
    assert answer.status == 403, answer.text
    return str(answer.json["message"])


def test_an_impersonated_request_has_only_the_rights_of_its_user(guarded: LiveServer) -> None:
    headers = {
        "Impersonate-User": "zed",
        "Impersonate-Group": "g1",
        "Impersonate-Uid": "u1",
        "Impersonate-Extra-Example.com%2fScopes": "a",
    }
    assert whoami(guarded, headers) == {
        "username": "zed",
        "uid": "u1",
        "groups": ["g1", "system:authenticated"],
        "extra": {"example.com/scopes": ["a"]},
    }
    message = refused(guarded.request("GET", MAPS, headers={"Impersonate-User": "zed"}))
    assert message.startswith('configmaps is forbidden: User "zed" cannot list')


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        (
            "system:serviceaccount:d:robot",
            ["system:serviceaccounts", "system:serviceaccounts:d", "system:authenticated"],
        ),
        ("system:node:n1", ["system:nodes", "system:authenticated"]),
        ("zed", ["system:authenticated"]),
    ],
)
def test_groups_that_are_not_named_follow_from_the_name(
    guarded: LiveServer, name: str, groups: list[str]
) -> None:
    assert whoami(guarded, {"Impersonate-User": name})["groups"] == groups


def test_repeated_groups_are_all_taken(guarded: LiveServer) -> None:
    connection = guarded.connection()
    connection.putrequest("POST", WHOAMI)
    for name, value in (
        ("Authorization", f"Bearer {guarded.token}"),
        ("Impersonate-User", "zed"),
        ("Impersonate-Group", "g1"),
        ("Impersonate-Group", "g2"),
        ("Content-Type", "application/json"),
        ("Content-Length", "2"),
    ):
        connection.putheader(name, value)
    connection.endheaders(b"{}")
    body = connection.getresponse().read()
    connection.close()
    assert b'"groups":["g1","g2","system:authenticated"]' in body


def test_an_empty_header_is_no_impersonation(guarded: LiveServer) -> None:
    answer = guarded.request("GET", "/version", headers={"Impersonate-User": ""})

    assert answer.status == 200, answer.text


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        (
            {"Impersonate-Group": "g1"},
            'Groups:[]string{"g1"}, Extra:map[string][]string(nil)}',
        ),
        (
            {"Impersonate-Extra-Scopes": "u1"},
            'Groups:[]string(nil), Extra:map[string][]string{"scopes":[]string{"u1"}}}',
        ),
    ],
)
def test_impersonation_needs_a_user_name(
    guarded: LiveServer, headers: dict[str, str], shown: str
) -> None:
    answer = guarded.request("GET", "/version", headers=headers)
    assert (answer.status, answer.json["message"]) == (
        400,
        f'requested &user.DefaultInfo{{Name:"", UID:"", {shown} without impersonating a user name',
    )


def test_a_refused_impersonation_names_the_first_mode_that_fits(guarded: LiveServer) -> None:
    def told(name: str, path: str = MAPS) -> str:
        return refused(as_(guarded, "carol", "GET", path, headers={"Impersonate-User": name}))

    where = 'resource "configmaps" in API group "" in the namespace "default"'
    start = 'configmaps is forbidden: User "carol" cannot '
    assert told("zed") == f"{start}impersonate-on:user-info:list {where}"
    assert told("system:node:n") == f"{start}impersonate-on:arbitrary-node:list {where}"
    account = told("system:serviceaccount:a:b")
    assert account == f"{start}impersonate-on:serviceaccount:list {where}"
    path = told("zed", "/version")
    assert path == 'forbidden: User "carol" cannot impersonate-on:user-info:get path "/version"'


def test_constrained_impersonation_needs_both_the_request_and_the_identity(
    guarded: LiveServer, given: Any
) -> None:
    given(
        role("on", rule("impersonate-on:user-info:create", "selfsubjectreviews", "*")),
        binding("on", "ClusterRole/on", user("carol")),
    )
    headers = {"Impersonate-User": "zed"}
    assert refused(as_(guarded, "carol", "POST", WHOAMI, {}, headers=headers)) == (
        'users.authentication.k8s.io "zed" is forbidden: User "carol" cannot '
        'impersonate:user-info resource "users" in API group "authentication.k8s.io" at the '
        "cluster scope"
    )
    given(
        role("as", rule("impersonate:user-info", "users groups", "authentication.k8s.io")),
        binding("as", "ClusterRole/as", user("carol")),
    )
    assert whoami(guarded, headers, "carol")["username"] == "zed"
    masters = {**headers, "Impersonate-Group": "system:masters"}
    assert refused(as_(guarded, "carol", "POST", WHOAMI, {}, headers=masters)) == (
        'groups.authentication.k8s.io "system:masters" is forbidden: User "carol" cannot '
        'impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the '
        "cluster scope: impersonating the system:masters group is not allowed"
    )


def test_the_legacy_mode_keeps_its_message_for_users_it_allowed_before(
    guarded: LiveServer, given: Any
) -> None:
    given(
        role(
            "imp",
            rule("impersonate", "users", resourceNames=["zed"]),
            rule("impersonate", "groups", resourceNames=["g1"]),
            rule("impersonate", "userextras/scopes", "authentication.k8s.io", resourceNames=["a"]),
        ),
        binding("imp", "ClusterRole/imp", user("ed")),
    )

    def told(headers: dict[str, str]) -> str:
        return refused(as_(guarded, "ed", "POST", WHOAMI, {}, headers=headers))

    assert "impersonate-on" in told({"Impersonate-User": "nope"})
    zed = {"Impersonate-User": "zed"}
    assert whoami(guarded, {**zed, "Impersonate-Group": "g1"}, "ed")["groups"][0] == "g1"
    start = 'is forbidden: User "ed" cannot impersonate resource'
    assert told({"Impersonate-User": "nope"}) == (
        f'users "nope" {start} "users" in API group "" at the cluster scope'
    )
    assert told({**zed, "Impersonate-Group": "g2"}).startswith(f'groups "g2" {start}')
    assert told({**zed, "Impersonate-Uid": "u2"}) == (
        f'uids.authentication.k8s.io "u2" {start} "uids" in API group "authentication.k8s.io" at '
        "the cluster scope"
    )
    assert told({**zed, "Impersonate-Extra-Scopes": "b"}).startswith(
        f'userextras.authentication.k8s.io "b" {start} "userextras/scopes"'
    )
    assert told({"Impersonate-User": "system:serviceaccount:ns1:sa1"}) == (
        f'serviceaccounts "sa1" {start} "serviceaccounts" in API group "" in the namespace "ns1"'
    )


def test_writes_belong_to_the_impersonated_user(guarded: LiveServer) -> None:
    mine = {"metadata": {"name": "x"}, "rules": [rule("*", "*", "*")]}
    path = f"/apis/{GROUP}/v1/clusterroles"
    answer = guarded.request("POST", path, mine, headers={"Impersonate-User": "zed"})
    assert refused(answer).startswith("clusterroles.rbac.authorization.k8s.io is forbidden")
