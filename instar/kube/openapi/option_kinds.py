"""Group versions that documents list for the DeleteOptions model, as registered upstream.

Called by the document modules. The document of a built-in group version lists that group version.
The documents of custom resources list every group version of Go's client; the single v2 document
lists the group versions of the server.
"""

from __future__ import annotations

from collections.abc import Iterable

from instar.base.json_values import Object
from instar.kube.api.names import GroupVersion

_CLIENT_VERSIONS = """
    /v1
    admissionregistration.k8s.io/v1,v1alpha1,v1beta1
    apps/v1,v1beta1,v1beta2
    authentication.k8s.io/v1,v1alpha1,v1beta1
    authorization.k8s.io/v1,v1beta1
    autoscaling/v1,v2
    batch/v1,v1beta1
    certificates.k8s.io/v1,v1alpha1,v1beta1
    coordination.k8s.io/v1,v1alpha2,v1beta1
    discovery.k8s.io/v1,v1beta1
    events.k8s.io/v1,v1beta1
    extensions/v1beta1
    flowcontrol.apiserver.k8s.io/v1,v1beta1,v1beta2,v1beta3
    internal.apiserver.k8s.io/v1alpha1
    networking.k8s.io/v1,v1beta1
    node.k8s.io/v1,v1alpha1,v1beta1
    policy/v1,v1beta1
    rbac.authorization.k8s.io/v1,v1alpha1,v1beta1
    resource.k8s.io/v1,v1alpha3,v1beta1,v1beta2
    scheduling.k8s.io/v1,v1alpha2,v1beta1
    storage.k8s.io/v1,v1alpha1,v1beta1
    storagemigration.k8s.io/v1beta1
"""
_SERVER_VERSIONS = """
    admission.k8s.io/v1,v1beta1
    apiextensions.k8s.io/v1,v1beta1
    apiregistration.k8s.io/v1,v1beta1
    imagepolicy.k8s.io/v1alpha1
"""


def _read(table: str) -> list[GroupVersion]:
    rows = [row.split("/") for row in table.split()]
    return [GroupVersion(group, version) for group, all in rows for version in all.split(",")]


OF_CLIENTS = _read(_CLIENT_VERSIONS)
EVERYWHERE = _read(_CLIENT_VERSIONS + _SERVER_VERSIONS)


def of_group(group: str, version: str) -> list[GroupVersion]:
    """Return the group versions for a document of a built-in group."""
    return [GroupVersion("", "v1"), GroupVersion(group, version)]


def option_kinds(homes: Iterable[GroupVersion]) -> list[Object]:
    return [
        {"group": home.group, "kind": "DeleteOptions", "version": home.version}
        for home in sorted(set(homes))
    ]
