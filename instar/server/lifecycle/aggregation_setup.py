"""Makes the aggregation layer of a server from its settings.

``composition.py`` calls it once per server; what the parts do is in ``server/aggregation``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from instar.server.aggregation.aggregator import Aggregator
from instar.server.aggregation.availability import AvailabilityController
from instar.server.aggregation.backends import Backends
from instar.server.aggregation.discovery_sync import DiscoverySync
from instar.server.aggregation.kubelets import Kubelets
from instar.server.aggregation.openapi_sync import OpenApiSync
from instar.server.aggregation.proxy import ApiProxy
from instar.server.aggregation.service_endpoints import ServiceRouting
from instar.server.aggregation.stored_services import StoredServices
from instar.server.http.messages import Header
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.settings import KubeletSettings, Settings
from instar.wire.webhooks.https import ClientCertificate
from instar.wire.webhooks.resolver import HostPort, parse_mapping


class OwnAddress:
    """Address of this server, known once its port is open."""

    def __init__(self) -> None:
        self.value: HostPort | None = None

    def __call__(self) -> HostPort | None:
        return self.value


def makes_proxy_certificate(settings: Settings) -> bool:
    """Return whether a client certificate for backends is made. Raises ``ValueError`` for half a
    pair."""
    wanted = settings.aggregation
    if wanted is None or settings.cluster is not None:
        return False
    if (wanted.client_cert is None) != (wanted.client_key is None):
        raise ValueError("a proxy client certificate needs its key, and the key its certificate")
    return wanted.client_cert is None and settings.front_proxy is None


def make_kubelets(settings: KubeletSettings) -> Kubelets:
    """Connections to the kubelets of Nodes that name one."""
    own = None
    if settings.client_cert is not None and settings.client_key is not None:
        own = ClientCertificate(str(settings.client_cert), str(settings.client_key))
    return Kubelets(settings.address_types, own, settings.authority)


def make_aggregator(
    settings: Settings,
    context: Context,
    catalog: Catalog,
    *,
    leads: Callable[[], bool],
    certificate: ClientCertificate | None,
    own_address: Callable[[], HostPort | None],
    every_answer: Sequence[Header],
) -> Aggregator | None:
    """Return None where APIs of other servers are not proxied."""
    wanted = settings.aggregation
    if wanted is None or settings.read_only or settings.cluster is not None:
        return None
    mappings = dict(parse_mapping(text) for text in settings.services)
    routing = ServiceRouting(mappings, wanted.by_endpoints, own_address)
    if wanted.client_cert is not None and wanted.client_key is not None:
        certificate = ClientCertificate(str(wanted.client_cert), str(wanted.client_key))
    services = StoredServices(catalog)
    backends = Backends(routing, services, certificate)
    objects = catalog.builtin("apiregistration.k8s.io", "apiservices")
    return Aggregator(
        context.backend,
        catalog,
        services,
        backends,
        ApiProxy(
            backends,
            request_timeout=settings.request_timeout,
            every_answer=tuple(every_answer),
            refuse_redirects=wanted.refuse_redirects,
        ),
        AvailabilityController(context, objects, backends, leads),
        DiscoverySync(backends, context.supervision, catalog.redocument),
        OpenApiSync(backends, context.supervision, catalog.redocument),
    )
