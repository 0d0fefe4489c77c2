"""What controller-runtime's suites of its client, cache, webhooks and envtest send, in their order:
each scenario follows the specs of one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from instar.base.json_values import Object
from tests.recordings.scenarios import (
    CRDS,
    PARTIAL,
    PARTIAL_LIST,
    Scenario,
    a_version,
    with_spec,
)

_LABELS = {"app": "frontend"}
_TEMPLATE: Object = {
    "metadata": {"labels": _LABELS},
    "spec": {"containers": [{"name": "nginx", "image": "nginx"}]},
}
_BOOKMARKS = "allowWatchBookmarks=true"


def _deployment(name: str = "a", replicas: int = 2, **metadata: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": _LABELS, **metadata},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": _LABELS},
            "template": _TEMPLATE,
        },
    }


def _map(name: str, data: Object | None = None, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": data or {"some-key": "some-value"},
    }


def _pod(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"test-label": name}},
        "spec": {"containers": [{"name": "nginx", "image": "nginx"}], **spec},
    }


def _reads_and_writes() -> Scenario:
    """Create, Update, Patch, Get, Delete of Client, typed and as metadata."""
    scenario = Scenario("client-writes")
    path = scenario.path("deployments", group="apps")
    one = f"{path}/a"
    scenario.post(f"{path}?dryRun=All", _deployment(), "create dry")
    scenario.get(one, "dry run made nothing")
    scenario.post(f"{path}?fieldManager=owner&fieldValidation=Strict", _deployment(), "made")
    scenario.post(path, _deployment(), "create existing")
    scenario.post(path, {**_deployment("b"), "spec": {}}, "create invalid")
    unknown = {**_deployment("c"), "unknown": 1}
    scenario.post(f"{path}?fieldValidation=Warn", unknown, "unknown field warns")
    scenario.post(f"{path}?fieldValidation=Strict", {**unknown, "more": 2}, "unknown field fails")
    scenario.get(one, "get")
    scenario.get(one, "get metadata", accept=f"{PARTIAL},application/json")
    stale: dict[str, Any] = {
        "annotations": {"a": "1"},
        "resourceVersion": "{{made.metadata.resourceVersion}}",
    }
    scenario.put(one, _deployment(**stale), "update")
    scenario.put(one, _deployment(**{**stale, "annotations": {"a": "2"}}), "update stale")
    scenario.put(f"{path}/none", _deployment("none"), "update of none")
    scenario.put(f"{one}?dryRun=All", _deployment(replicas=5), "update dry")
    scenario.merge(f"{one}?dryRun=All", {"metadata": {"annotations": {"x": "y"}}}, "patch dry")
    scenario.merge(one, {"metadata": {"annotations": {"foo": "bar"}}}, "merge")
    scenario.merge(
        one,
        {
            "metadata": {
                "resourceVersion": "{{made.metadata.resourceVersion}}",
                "labels": {"x": "y"},
            }
        },
        "merge with optimistic lock",
    )
    scenario.strategic(
        one,
        {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side"}]}}}},
        "strategic merge",
    )
    scenario.json_patch(one, [{"op": "remove", "path": "/metadata/annotations/foo"}], "json patch")
    scenario.merge(one, {"metadata": {"annotations": {"m": "1"}}}, "metadata patch",
                   headers={"Accept": f"{PARTIAL},application/json"})  # fmt: skip
    scenario.merge(f"{path}/none", {"metadata": {"labels": {"a": "b"}}}, "patch of none")
    wrong = {"preconditions": {"uid": "other"}}
    scenario.delete(one, wrong, "delete with another uid")
    scenario.delete(f"{one}?dryRun=All", None, "delete dry", only_failure=True)
    right = {
        "kind": "DeleteOptions",
        "apiVersion": "apps/v1",
        "preconditions": {"uid": "{{made.metadata.uid}}"},
        "propagationPolicy": "Background",
        "gracePeriodSeconds": 0,
    }
    scenario.delete(one, right, "delete", only_failure=True)
    scenario.delete(one, None, "delete of none")
    for name in ("d", "e"):
        scenario.post(path, _deployment(name), "made for the collection", only_code=True)
    scenario.delete(f"{path}?labelSelector=app%3Dfrontend", None, "delete all", only_failure=True)
    scenario.get(path, "nothing is left")
    return scenario


def _subresources() -> Scenario:
    """SubResourceClient and StatusClient."""
    scenario = Scenario("client-subresources")
    path = scenario.path("deployments", group="apps")
    one = f"{path}/a"
    scenario.post(path, _deployment(), "made")
    scenario.get(f"{one}/scale", "scale")
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}
    scenario.put(f"{one}/scale", {**scale, "spec": {"replicas": 3}}, "update scale")
    scenario.merge(f"{one}/scale", {"spec": {"replicas": 4}}, "patch scale")
    scenario.apply(f"{one}/scale", {**scale, "spec": {"replicas": 5}}, "me", "apply scale",
                   force=True)  # fmt: skip
    status = {"replicas": 1, "unavailableReplicas": 1}
    scenario.put(f"{one}/status", {**_deployment(replicas=7), "status": status}, "update status")
    scenario.get(one, "the spec stays")
    scenario.merge(f"{one}/status", {"status": {"replicas": 2}}, "patch status")
    applied = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}
    scenario.apply(f"{one}/status", {**applied, "status": {"replicas": 1}}, "me", "apply status",
                   force=True)  # fmt: skip
    scenario.merge(f"{one}/status", {"metadata": {"annotations": {"a": "b"}}}, "metadata status",
                   headers={"Accept": f"{PARTIAL},application/json"})  # fmt: skip
    scenario.put(f"{path}/none/status", _deployment("none"), "status of none")
    pods = scenario.path("pods", group="")
    for name in ("evicted", "bound"):
        scenario.post(pods, _pod(name), name, only_failure=True)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "evicted"}}
    scenario.post(f"{pods}/evicted/eviction",
                  {**eviction, "deleteOptions": {"gracePeriodSeconds": 0}}, "evict")  # fmt: skip
    scenario.get(f"{pods}/evicted", "evicted is gone")
    target = {"target": {"apiVersion": "v1", "kind": "Node", "name": "nodeName"}}
    scenario.post(f"{pods}/bound/binding", {"metadata": {"name": "bound"}, **target}, "bind")
    scenario.post(f"{pods}/bound/binding", {"metadata": {"name": "bound"}, **target}, "bind again")
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    accounts = scenario.path("serviceaccounts", group="")
    scenario.post(f"{accounts}/default/token", token, "token", only_failure=True)
    scenario.post(f"{accounts}/none/token", token, "token of none")
    return scenario


def _apply() -> Scenario:
    """Apply of Client, and FieldOwner."""
    scenario = Scenario("client-apply", managed=True)
    maps = scenario.path("configmaps", group="")
    secrets = scenario.path("secrets", group="")
    scenario.apply(f"{maps}/a", _map("a"), "test-owner", "apply creates")
    scenario.apply(f"{maps}/a", _map("a", {"a": "b"}), "test-owner", "apply replaces")
    scenario.apply(f"{maps}/a", _map("a", {"a": "c"}), "other", "apply conflicts")
    scenario.apply(f"{maps}/a", _map("a", {"a": "c"}), "other", "apply forces", force=True)
    scenario.apply(f"{maps}/a", {**_map("a"), "data": 5}, "test-owner", "apply of a wrong type")
    scenario.ask("PATCH", f"{maps}/a", _map("a"), "apply without owner",
                 media="application/apply-patch+yaml")  # fmt: skip
    scenario.apply(f"{maps}/b", _map("a"), "test-owner", "apply of another name")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    scenario.post(secrets, {**secret, "data": {"a": "Yg=="}}, "secret")
    scenario.apply(f"{secrets}/s", {**secret, "data": {"c": "ZA=="}}, "me", "apply of a secret")
    scenario.merge(f"{maps}/a?fieldManager=patcher", {"data": {"p": "1"}}, "owned by its patcher")
    return scenario


def _lists_and_watches() -> Scenario:
    """List of Client, and what informers of the cache ask."""
    scenario = Scenario("cache-reads")
    pods = scenario.path("pods", group="")
    for name, policy in (("one", "Never"), ("two", "Always"), ("three", "OnFailure")):
        scenario.post(pods, _pod(name, restartPolicy=policy), name, only_code=True)
    never = "fieldSelector=spec.restartPolicy%3DNever"
    scenario.get(f"{pods}?{never}", "by field")
    scenario.get(f"{pods}?fieldSelector=metadata.name%3Dtwo", "by name")
    scenario.get(f"{pods}?labelSelector=test-label+in+%28one%2Ctwo%29", "by labels")
    scenario.get(f"{pods}?labelSelector=test-label%21%3Done&{never}", "by both")
    scenario.get(f"{pods}?fieldSelector=spec.none%3Dx", "by an unknown field")
    scenario.get(f"{pods}?limit=1", "first page")
    scenario.get(f"{pods}?limit=2&continue={{{{first page.metadata.continue}}}}", "second page")
    scenario.get(f"{pods}?limit=500&resourceVersion=0", "list of an informer")
    scenario.get(f"{pods}?limit=500&resourceVersion=0", "list of a metadata informer",
                 accept=f"{PARTIAL_LIST},application/json")  # fmt: skip
    scenario.get(f"{pods}/one?resourceVersion=0", "get from the cache")
    maps = scenario.path("configmaps", group="")
    scenario.get(f"{maps}?limit=500&resourceVersion=0", "empty")
    scenario.post(maps, _map("a", labels={"watched": "yes"}), "a")
    scenario.put(f"{maps}/a", _map("a", {"x": "1"}, labels={"watched": "yes"}), "a changes")
    scenario.put(f"{maps}/a", _map("a", {"x": "1"}), "a leaves the selector")
    scenario.put(f"{maps}/a", _map("a", {"x": "2"}, labels={"watched": "yes"}), "a comes back")
    scenario.delete(f"{maps}/a", None, "a goes", only_failure=True)
    since = "resourceVersion={{empty.metadata.resourceVersion}}"
    scenario.watch(f"{maps}?{_BOOKMARKS}&{since}", 5, "watch")
    scenario.watch(f"{maps}?{_BOOKMARKS}&{since}&labelSelector=watched%3Dyes", 4, "selective")
    scenario.watch(f"{maps}?{_BOOKMARKS}&{since}&fieldSelector=metadata.name%3Da", 5, "by name")
    scenario.watch(
        f"{maps}?{_BOOKMARKS}&{since}", 5, "watch of metadata", f"{PARTIAL},application/json"
    )
    scenario.get(f"{maps}?watch=1&resourceVersion=x", "watch of no revision")
    return scenario


def _webhooks() -> Scenario:
    """Defaulting, validating and converting webhooks at the URLs that envtest writes."""
    scenario = Scenario("envtest-webhooks")
    schema = with_spec(a={"type": "string"}, size={"type": "integer"})
    newer = with_spec(a={"type": "string"}, replicas={"type": "integer"})
    webhook = {
        "conversionReviewVersions": ["v1", "v1beta1"],
        "clientConfig": {"url": "{{hook.url}}//convert/rename", "caBundle": "{{hook.ca}}"},
    }
    versions = [a_version("v1", schema), a_version("v2", newer, storage=False)]
    conversion = {"strategy": "Webhook", "webhook": webhook}
    scenario.make_crd(scenario.crd(versions, conversion=conversion))
    hooks = (("mutating", "//admit/spec"), ("validating", "/a/..//./admit//deny-message"))
    for kind, place in hooks:
        rule = {
            "operations": ["CREATE", "UPDATE"],
            "apiGroups": [scenario.group],
            "apiVersions": ["v1"],
            "resources": ["foos"],
        }
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind.capitalize()}WebhookConfiguration",
            "metadata": {"name": f"{scenario.name}-{kind}"},
            "webhooks": [
                {
                    "name": f"{kind}.{scenario.group}",
                    "clientConfig": {"url": f"{{{{hook.url}}}}{place}", "caBundle": "{{hook.ca}}"},
                    "rules": [rule],
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1", "v1beta1"],
                    "failurePolicy": "Ignore" if kind == "mutating" else "Fail",
                    "matchPolicy": "Equivalent",
                    "objectSelector": {"matchLabels": {"hook": kind}},
                }
            ],
        }
        scenario.post(f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations", body,
                      "configured", only_code=True, must_succeed=True, pause=2.0)  # fmt: skip
    foos, newer_foos = scenario.path("foos"), scenario.path("foos", version="v2")

    def labelled(name: str, hook: str, version: str = "v1", **spec: Any) -> Object:
        metadata = {"labels": {"hook": hook}}
        return scenario.object(name, version=version, metadata=metadata, spec=spec)

    scenario.post(foos, labelled("a", "mutating", size=3), "defaulted")
    scenario.post(foos, labelled("b", "validating", size=3), "refused")
    scenario.post(foos, labelled("b", "none", size=4), "neither")
    scenario.merge(f"{foos}/b", {"metadata": {"labels": {"hook": "validating"}}}, "update refused")
    scenario.get(f"{newer_foos}/a", "converted")
    scenario.post(newer_foos, labelled("c", "mutating", "v2", replicas=5), "equivalent request")
    scenario.get(foos, "all at v1")
    scenario.get(newer_foos, "all at v2")
    scenario.delete(f"{foos}/a", None, "delete", only_failure=True)
    return scenario


def _environment() -> Scenario:
    """envtest's InstallCRDs and UninstallCRDs, namespaces, and what its users may do."""
    scenario = Scenario("envtest-environment")
    document = scenario.crd(with_spec(a={"type": "string"}), names={"singular": "foo"})
    name = document["metadata"]["name"]
    group = f"/apis/{scenario.group}"
    scenario.get(f"{CRDS}/{name}", "no crd")
    scenario.get(f"{group}/v1", "no version")
    scenario.make_crd(document)
    scenario.wait_for(group)
    scenario.wait_for(f"{group}/v1")
    scenario.get(group, "group")
    scenario.get(f"{group}/v1", "version")
    scenario.post(CRDS, document, "crd exists")
    scenario.post(scenario.path("foos"), scenario.object("a", spec={"a": "1"}), "an object")
    scenario.delete(f"{CRDS}/{name}", None, "uninstall", only_code=True, pause=3.0)
    scenario.get(f"{CRDS}/{name}", "crd is gone")
    scenario.get(f"{group}/v1", "version is gone")
    scenario.get(scenario.path("foos"), "resource is gone")
    inner = f"{scenario.name}-inner"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inner}}
    path = f"/api/v1/namespaces/{inner}"
    scenario.post("/api/v1/namespaces", namespace, "namespace")
    scenario.post(f"{path}/configmaps", _map("a"), "in it", only_code=True)
    scenario.delete(path, None, "namespace ends", only_failure=True)
    scenario.get(path, "it terminates")
    scenario.post(f"{path}/configmaps", _map("b"), "create in a terminating one")
    scenario.put(f"{path}/finalize", {**namespace, "spec": {"finalizers": []}}, "finalize",
                 only_failure=True)  # fmt: skip
    scenario.get(path, "namespace is gone")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    scenario.post(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, "who", only_code=True
    )
    access = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    for user, groups in (("envtest-user", ["system:authenticated"]), ("x", ["system:masters"])):
        attributes = {"verb": "list", "resource": "pods", "namespace": "default"}
        spec = {"user": user, "groups": groups, "resourceAttributes": attributes}
        scenario.post("/apis/authorization.k8s.io/v1/subjectaccessreviews",
                      {**access, "spec": spec}, f"may {user}")  # fmt: skip
    return scenario


def scenarios() -> Iterator[Scenario]:
    yield _reads_and_writes()
    yield _subresources()
    yield _apply()
    yield _lists_and_watches()
    yield _webhooks()
    yield _environment()
