"""Arguments of a subresource handler: the request, its target, and services of the server.

``server/app.py`` makes one ``SubresourceCall`` for each request to a path in ``subresources.py``.
"""

from __future__ import annotations

from instar.base.fast_dataclass import dataclass
from instar.server.http.messages import Request
from instar.server.identity.issuer import Issuer
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.resources.resource import Target
from instar.server.rest.pods.kubelet_requests import KubeletConnections


@dataclass(frozen=True, slots=True)
class SubresourceCall:
    """What a subresource handler gets."""

    context: Context
    catalog: Catalog
    issuer: Issuer
    kubelets: KubeletConnections
    request: Request
    target: Target
