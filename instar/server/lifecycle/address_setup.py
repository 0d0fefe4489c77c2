"""Makes the allocator of Services' addresses and ports; ``composition.py`` calls it once.

What it does is in ``registry/admission/plugins/service_addresses.py``.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.server.lifecycle.controller_setup import store_sharing
from instar.server.lifecycle.loaded_settings import LoadedSettings
from instar.server.registry.admission.plugins.node_port_claims import NodePortClaims
from instar.server.registry.admission.plugins.service_addresses import ServiceAddresses
from instar.server.registry.controllers.bootstrap.address_claims import AddressClaims
from instar.server.registry.controllers.bootstrap.writer import BootstrapWriter
from instar.server.registry.controllers.leadership import StoreSharing
from instar.server.registry.resources.catalog import Catalog
from instar.server.registry.resources.context import Context
from instar.server.registry.stored.backend import Backend
from instar.wire.storage.keys import collection_prefix


def service_addresses(
    loaded: LoadedSettings, backend: Backend, registry: Callable[[], tuple[Context, Catalog]]
) -> ServiceAddresses:
    """Cluster IPs are claimed in the store, unless no controller would end the claims; node ports,
    where other processes write to the store."""
    claims = None
    if loaded.settings.bootstrap_objects:
        services = backend.collection(collection_prefix("", "services"))
        claims = AddressClaims(lambda: BootstrapWriter(*registry()), services)
    alone = store_sharing(backend.store) is StoreSharing.ALONE
    port_claims = None if alone else NodePortClaims(backend.store)
    return ServiceAddresses(backend, loaded.service_network, claims, port_claims)
