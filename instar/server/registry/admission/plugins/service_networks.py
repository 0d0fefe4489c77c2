"""Networks from which Services get addresses, as the stored ServiceCIDRs say; candidates in them.

``service_addresses.py`` asks for them with each address it gives. Pure but for reading the cache.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network

from instar.base.json_values import Object
from instar.server.registry.stored.entry import CacheEntry, UnreadableEntry
from instar.wire.storage.watchcache.collection import Collection

_TRIES = 64


def service_networks(ranges: Collection[CacheEntry], default: IPv4Network) -> list[IPv4Network]:
    """Return the IPv4 networks of ServiceCIDRs that are ready and not being deleted, in the order
    of their names; while there is no ServiceCIDR, the default one."""
    if not ranges.entries:
        return [default]
    found: list[IPv4Network] = []
    for name in ranges.keys:
        try:
            obj = ranges.entries[name].decode()
        except UnreadableEntry:
            continue
        if _is_ready(obj):
            found += [IPv4Network(text) for text in obj["spec"]["cidrs"] if ":" not in text]
    return list(dict.fromkeys(found))


def _is_ready(obj: Object) -> bool:
    """As upstream, a ServiceCIDR without the condition is ready: no controller may be there to set
    it."""
    if obj["metadata"].get("deletionTimestamp"):
        return False
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return all(one.get("status") == "True" for one in conditions if one.get("type") == "Ready")


def upper_first(places: range, static: int) -> Iterable[int]:
    """Yield the upper part first; the lower part is kept for explicit requests while possible."""
    yield from shuffled(places[static:])
    yield from shuffled(places[:static])


def shuffled(places: range) -> Iterable[int]:
    """Yield a few random candidates; then, for a crowded range, all in a row from a random
    start."""
    yield from (random.choice(places) for _ in range(_TRIES if places else 0))
    start = random.randrange(len(places) or 1)
    yield from (places[(start + step) % len(places)] for step in range(len(places)))


def random_addresses(networks: Iterable[IPv4Network]) -> Iterable[str]:
    """Yield addresses of the networks except the network's own, the broadcast address and the first
    one, which in the default network is the API server's."""
    for network in networks:
        first = int(network.network_address)
        static = min(max(16, network.num_addresses // 16), 256)
        for offset in upper_first(range(2, network.num_addresses - 1), static - 1):
            yield str(IPv4Address(first + offset))
