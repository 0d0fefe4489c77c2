"""URL paths of the Kubernetes API.

Used by ``cli/commands``, ``tools/migrator`` and ``tools/console/views`` for requests through
``client.py``. The functions only build text.
"""

from __future__ import annotations

from urllib.parse import quote

from instar.kube.api.crd import Crd


def resource_path(
    group: str,
    version: str,
    plural: str,
    *,
    namespace: str = "",
    name: str = "",
    subresource: str = "",
) -> str:
    """Return the path of a collection, or of one object if ``name`` is given. Without a
    ``namespace`` it means all namespaces, or cluster scope."""
    parts = ["apis", group, version] if group else ["api", version]
    if namespace:
        parts += ["namespaces", namespace]
    parts += [part for part in (plural, name, subresource) if part]
    return "/" + "/".join(quote(part, safe="") for part in parts)


def path_in(crd: Crd, version: str, key: str = "", subresource: str = "") -> str:
    """Return the path of a CRD's collection over all namespaces, or of one ``namespace/name``."""
    namespace, _, name = key.rpartition("/")
    return resource_path(
        crd.group,
        version,
        crd.names.plural,
        namespace=namespace,
        name=name,
        subresource=subresource,
    )


def crd_path(name: str = "", *, subresource: str = "") -> str:
    return resource_path(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        name=name,
        subresource=subresource,
    )
