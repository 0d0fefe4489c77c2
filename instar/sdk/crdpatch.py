"""Points a CRD on a cluster at a webhook: the conversion stanza and the authority it trusts."""

from __future__ import annotations

from typing import Any

from instar.client.client import Client
from instar.client.paths import crd_path


def conversion_stanza(host: str, bundle: str, *, path: str, port: int) -> dict[str, Any]:
    """``host`` is ``name.namespace.svc`` for a service, else a host for a URL."""
    client: dict[str, Any] = {"caBundle": bundle}
    if host.endswith(".svc"):
        name, namespace = service_of(host)
        client["service"] = {"name": name, "namespace": namespace, "path": path, "port": port}
    else:
        shown = f"[{host}]" if ":" in host else host
        client["url"] = f"https://{shown}:{port}{path}"
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1", "v1beta1"]},
    }


def service_of(host: str) -> tuple[str, str]:
    parts = host.split(".")
    if len(parts) != 3 or parts[2] != "svc" or not all(parts):
        raise ValueError(f"{host!r} is not of the form NAME.NAMESPACE.svc")
    return parts[0], parts[1]


async def patch_crd(client: Client, name: str, stanza: dict[str, Any]) -> str:
    """Returns what was done. A webhook already set up keeps its address; only the CA changes."""
    crd = await client.get(crd_path(name))
    current = (crd.get("spec") or {}).get("conversion") or {}
    address = ((current.get("webhook") or {}).get("clientConfig")) or {}
    bundle = stanza["webhook"]["clientConfig"]["caBundle"]
    if current.get("strategy") == "Webhook" and (address.get("service") or address.get("url")):
        conversion: dict[str, Any] = {"webhook": {"clientConfig": {"caBundle": bundle}}}
        done = "caBundle replaced"
    else:
        conversion, done = stanza, "conversion webhook set up"
    version = {"resourceVersion": crd["metadata"]["resourceVersion"]}
    await client.patch(crd_path(name), {"metadata": version, "spec": {"conversion": conversion}})
    return f"{name}: {done}"
