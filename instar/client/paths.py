"""URL paths of the Kubernetes API, spelled in one place."""

from __future__ import annotations

from urllib.parse import quote


def resource_path(
    group: str,
    version: str,
    plural: str,
    *,
    namespace: str = "",
    name: str = "",
    subresource: str = "",
) -> str:
    """A collection without ``name``, else one object; no ``namespace`` is all, or cluster scope."""
    parts = ["apis", group, version] if group else ["api", version]
    if namespace:
        parts += ["namespaces", namespace]
    parts += [part for part in (plural, name, subresource) if part]
    return "/" + "/".join(quote(part, safe="") for part in parts)


def crd_path(name: str = "", *, subresource: str = "") -> str:
    return resource_path(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        name=name,
        subresource=subresource,
    )
