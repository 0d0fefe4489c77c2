"""Patches a CRD on a cluster to use a webhook: its conversion stanza and the CA bundle.

``instar webhook --patch-crd`` calls it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path

_MOST_AUTHORITIES = 4
"""CAs to keep: each start with --self-signed makes a new one, and older ones are unused."""


def client_config(host: str, bundle: str, *, path: str, port: int) -> dict[str, Any]:
    """Return the clientConfig. ``host`` is ``name.namespace.svc`` for a service, else a host for a
    URL.
    """
    client: dict[str, Any] = {"caBundle": bundle}
    if host.endswith(".svc"):
        name, namespace = service_of(host)
        client["service"] = {"name": name, "namespace": namespace, "path": path, "port": port}
    else:
        shown = f"[{host}]" if ":" in host else host
        client["url"] = f"https://{shown}:{port}{path}"
    return client


def conversion_stanza(host: str, bundle: str, *, path: str, port: int) -> dict[str, Any]:
    client = client_config(host, bundle, path=path, port=port)
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1", "v1beta1"]},
    }


def service_of(host: str) -> tuple[str, str]:
    parts = host.split(".")
    if len(parts) != 3 or parts[2] != "svc" or not all(parts):
        raise ValueError(f"{host!r} is not of the form NAME.NAMESPACE.svc")
    return parts[0], parts[1]


class AddressMismatch(Exception):
    """The CRD's webhook has another address, for which this certificate is not valid."""


def merged_bundle(new: str, old: str) -> str:
    """Return the new CA first, then those trusted so far, because during a rolling update replicas
    with certificates of both CAs serve. Expired, unreadable or surplus certificates are dropped.
    """
    pem = base64.b64decode(new)
    kept = {item.fingerprint(hashes.SHA256()) for item in x509.load_pem_x509_certificates(pem)}
    try:
        known = x509.load_pem_x509_certificates(base64.b64decode(old)) if old else []
    except ValueError:
        known = []
    now = datetime.now(UTC)
    for item in known:
        mark = item.fingerprint(hashes.SHA256())
        if mark in kept or item.not_valid_after_utc < now or len(kept) >= _MOST_AUTHORITIES:
            continue
        kept.add(mark)
        pem += item.public_bytes(Encoding.PEM)
    return base64.b64encode(pem).decode()


def address_of(client_config: Mapping[str, Any]) -> str:
    """Return the host name for which a server checks the certificate."""
    service = client_config.get("service")
    if service:
        return f"{service.get('name')}.{service.get('namespace')}.svc"
    return urlsplit(str(client_config.get("url") or "")).hostname or ""


async def patch_crd(
    client: Client, name: str, stanza: dict[str, Any], *, repoint: bool = False
) -> str:
    """Patch the CRD; return a text that says what was done. A configured webhook keeps its address
    and gets our CA added. Raises ``AddressMismatch`` if the certificate is for another host, unless
    ``repoint`` is set.
    """
    crd = await client.get(crd_path(name))
    current = (crd.get("spec") or {}).get("conversion") or {}
    address = ((current.get("webhook") or {}).get("clientConfig")) or {}
    wanted = stanza["webhook"]["clientConfig"]
    there, here = address_of(address), address_of(wanted)
    if current.get("strategy") != "Webhook" or not there:
        conversion, done = stanza, "conversion webhook set up"
    elif there == here:
        bundle = merged_bundle(wanted["caBundle"], address.get("caBundle") or "")
        conversion = {"webhook": {"clientConfig": {"caBundle": bundle}}}
        done = "caBundle added"
    elif repoint:
        gone = {"url": None} if "service" in wanted else {"service": None}
        config = {**gone, **wanted}
        conversion = {"webhook": {**stanza["webhook"], "clientConfig": config}}
        done = f"conversion webhook moved from {there} to {here}"
    else:
        raise AddressMismatch(
            f"{name} sends its reviews to {there}, and this certificate is for {here}; give "
            f"--self-signed {there}, or --repoint to send them here"
        )
    version = {"resourceVersion": crd["metadata"]["resourceVersion"]}
    await client.patch(crd_path(name), {"metadata": version, "spec": {"conversion": conversion}})
    return f"{name}: {done}"
