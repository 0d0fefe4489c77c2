"""The table of resources."""

from __future__ import annotations

from instar.kube.facts.resources import BuiltinColumn, BuiltinSubresource, ResourceFacts, resources


def one(group: str, version: str, plural: str) -> ResourceFacts:
    (found,) = (
        item
        for item in resources()
        if (item.group, item.version, item.plural) == (group, version, plural)
    )
    return found


def test_a_resource_with_all_it_has() -> None:
    deployments = one("apps", "v1", "deployments")
    assert deployments.api_version == "apps/v1"
    assert (deployments.kind, deployments.singular) == ("Deployment", "deployment")
    assert deployments.namespaced
    assert "deletecollection" in deployments.verbs
    assert deployments.short_names == ("deploy",)
    assert deployments.categories == ("all",)
    assert deployments.columns[0] == BuiltinColumn("Name", "string", "name", 0)
    verbs = ("get", "patch", "update")
    assert deployments.subresources == (
        BuiltinSubresource("scale", "autoscaling", "v1", "Scale", verbs),
        BuiltinSubresource("status", "apps", "v1", "Deployment", verbs),
    )


def test_kinds_of_the_core_group_have_no_group() -> None:
    pods = one("", "v1", "pods")
    assert pods.api_version == "v1"
    kinds = {part.name: (part.group, part.kind) for part in pods.subresources}
    assert kinds["eviction"] == ("policy", "Eviction")
    assert kinds["binding"] == ("", "Binding")


def test_resources_that_can_only_be_created_have_no_columns() -> None:
    reviews = one("authorization.k8s.io", "v1", "subjectaccessreviews")
    assert reviews.verbs == ("create",)
    assert reviews.columns == ()
    assert not reviews.namespaced


def test_the_table_is_made_once() -> None:
    assert resources() is resources()
