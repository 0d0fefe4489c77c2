"""Every API server of the main cluster, each of which must show a freeze and a flip.

``cli/commands/adopt`` calls it. The addresses are those that the API servers publish as
endpoints of the Service ``default/kubernetes``, unless the user names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from instar.base.errors import ApiError
from instar.tools.adopter.errors import AdoptError
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import Access

_SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
_NAME = "kubernetes.default.svc"
_SECONDS = 5.0


async def api_servers(client: Client, named: Sequence[str], user_agent: str) -> list[Client]:
    """Return a client for each API server; the caller closes them. Raises ``AdoptError`` if one
    cannot be reached from here."""
    access = client.access
    urls = list(named) or await _published(client)
    found = [access] if not urls else [_at(access, url, bool(named)) for url in urls]
    clients = [Client(each, timeout=_SECONDS, user_agent=user_agent) for each in found]
    for each in clients:
        try:
            await each.get("/version")
        except ApiError as error:
            for other in clients:
                await other.close()
            raise AdoptError(
                f"the API server {each.access.server} cannot be asked ({error.message}): every one "
                "must show that it refuses writes; run this where they can be reached, or name "
                "them by --api-server"
            ) from error
    return clients


async def _published(client: Client) -> list[str]:
    query = {"labelSelector": "kubernetes.io/service-name=kubernetes"}
    page = await client.get(_SLICES, **query)
    return [
        f"https://{_host(address)}:{port.get('port') or 443}"
        for item in page.get("items") or ()
        for port in item.get("ports") or ()
        for endpoint in item.get("endpoints") or ()
        for address in endpoint.get("addresses") or ()
    ]


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _at(access: Access, url: str, named: bool) -> Access:
    name = access.server_name if named else access.server_name or _NAME
    return replace(access, server=url.rstrip("/"), server_name=name)
