"""Which requests a configuration means: the reference's tables, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from instar.kube.admission.match_rules import MatchedRequest, RequestEndpoint
from instar.kube.admission.matching import Criteria, read_criteria, read_match_resources
from instar.kube.api.names import GroupVersionKind


def endpoint(
    version: str = "v1", resource: str = "widgets", group: str = "ref.io"
) -> RequestEndpoint:
    return RequestEndpoint(group, version, resource, GroupVersionKind(group, version, "Widget"))


VERSIONS = tuple(endpoint(version) for version in ("v1beta1", "v1", "v2"))


def asked(version: str = "v1", **changes: Any) -> MatchedRequest:
    given: dict[str, Any] = {"namespace": "default", "name": "c1", "equivalents": VERSIONS}
    return MatchedRequest("CREATE", endpoint(version), **(given | changes))


def rule(**changes: Any) -> dict[str, Any]:
    given = {
        "operations": ["CREATE"],
        "apiGroups": ["ref.io"],
        "apiVersions": ["v1"],
        "resources": ["widgets"],
        "scope": "*",
    }
    return given | changes


def webhook(*rules: dict[str, Any], **fields: Any) -> Criteria:
    return read_criteria({"rules": list(rules), **fields})


@pytest.mark.parametrize(
    ("resources", "subresource", "matches"),
    [
        (["widgets"], "", True),
        (["widgets"], "status", False),
        (["*"], "", True),
        (["*"], "status", False),
        (["widgets/*"], "", True),
        (["widgets/*"], "status", True),
        (["*/status"], "status", True),
        (["*/status"], "", False),
        (["*/*"], "scale", True),
        (["*/*"], "", True),
        (["gadgets"], "", False),
        (["gadgets", "widgets/scale"], "scale", True),
    ],
)
def test_a_rule_matches_a_resource_with_or_without_its_subresources(
    resources: list[str], subresource: str, matches: bool
) -> None:
    found = webhook(rule(resources=resources)).endpoint(asked(subresource=subresource))

    assert (found is not None) is matches


@pytest.mark.parametrize(
    ("change", "matches"),
    [
        ({"operations": ["*"]}, True),
        ({"operations": ["UPDATE", "DELETE"]}, False),
        ({"apiGroups": ["*"], "apiVersions": ["*"]}, True),
        ({"apiGroups": [""]}, False),
        ({"apiVersions": ["v9"]}, False),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
        ({"operations": []}, False),
    ],
)
def test_every_part_of_a_rule_must_match(change: dict[str, Any], matches: bool) -> None:
    assert (webhook(rule(**change)).endpoint(asked()) is not None) is matches


def test_a_namespace_is_of_the_cluster_though_its_request_has_a_namespace() -> None:
    namespaces = RequestEndpoint("", "v1", "namespaces", GroupVersionKind("", "v1", "Namespace"))
    request = MatchedRequest(
        "CREATE", namespaces, namespace="x", name="x", equivalents=(namespaces,)
    )
    core = rule(apiGroups=[""], resources=["namespaces"])

    assert webhook(core | {"scope": "Cluster"}).endpoint(request) == namespaces
    assert webhook(core | {"scope": "Namespaced"}).endpoint(request) is None


def test_without_rules_a_webhook_is_never_called_and_a_binding_always_means_it() -> None:
    assert webhook().endpoint(asked()) is None
    assert read_match_resources({}, unruled=True).endpoint(asked()) == endpoint("v1")
    assert read_match_resources({}).endpoint(asked()) is None


def test_an_equivalent_version_is_chosen_by_rule_then_by_order_of_registration() -> None:
    later, earlier = rule(apiVersions=["v2"]), rule(apiVersions=["v1beta1", "v2"])

    assert webhook(later, earlier).endpoint(asked("v1")) == endpoint("v2")
    assert webhook(earlier, later).endpoint(asked("v1")) == endpoint("v1beta1")


def test_a_rule_that_names_the_requests_version_comes_before_any_conversion() -> None:
    found = webhook(rule(apiVersions=["v2"]), rule(apiVersions=["v1"])).endpoint(asked("v1"))

    assert found == endpoint("v1")


def test_exact_means_only_the_versions_it_names() -> None:
    assert webhook(rule(), matchPolicy="Exact").endpoint(asked("v2")) is None
    assert webhook(rule(), matchPolicy="Equivalent").endpoint(asked("v2")) == endpoint("v1")


def test_excluded_rules_and_names_narrow_a_policy() -> None:
    policy = read_match_resources(
        {
            "resourceRules": [rule(resourceNames=["c1", "c2"])],
            "excludeResourceRules": [rule(resourceNames=["c2"])],
        }
    )

    assert policy.endpoint(asked()) == endpoint("v1")
    assert policy.endpoint(asked(name="c2")) is None
    assert policy.endpoint(asked(name="c3")) is None


@pytest.mark.parametrize(
    ("new", "old", "matches"),
    [
        ({"a": "1"}, None, True),
        ({}, {"a": "1"}, True),
        ({}, {}, False),
        (None, None, False),
        (None, {"a": "1"}, True),
    ],
)
def test_a_selector_takes_an_object_by_what_it_is_or_what_it_was(
    new: dict[str, str] | None, old: dict[str, str] | None, matches: bool
) -> None:
    criteria = webhook(rule(), objectSelector={"matchLabels": {"a": "1"}})

    assert criteria.takes_object(new, old) is matches


def test_an_object_that_is_not_there_matches_no_selector_not_even_by_lacking_a_label() -> None:
    lacking = {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}
    criteria = webhook(rule(), objectSelector=lacking)

    assert criteria.takes_object(None, None) is False
    assert criteria.takes_object(None, {}) is True


def test_an_empty_selector_takes_everything() -> None:
    assert webhook(rule(), objectSelector={}).takes_object(None, None) is True
