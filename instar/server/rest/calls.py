"""One request to a path that is a verb of its own, and what its answer may need."""

from __future__ import annotations

from instar.identity.issuer import Issuer
from instar.records import dataclass
from instar.registry.resources.catalog import Catalog
from instar.registry.resources.context import Context
from instar.registry.resources.resource import Target
from instar.server.rest.request import Request


@dataclass(frozen=True, slots=True)
class Call:
    context: Context
    catalog: Catalog
    issuer: Issuer
    request: Request
    target: Target
