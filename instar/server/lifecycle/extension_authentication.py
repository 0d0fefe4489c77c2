"""Data of the ConfigMap ``kube-system/extension-apiserver-authentication`` about this server.

Aggregated API servers and kube-controller-manager read it to recognise the client certificates and
the front proxies that this server trusts. ``lifetime.py`` passes the data to the bootstrap
controller, which writes the ConfigMap.
"""

from __future__ import annotations

import json
from pathlib import Path

from instar.base.text_files import read_text
from instar.server.access.identities import FrontProxySettings
from instar.server.aggregation.request_head import EXTRA, GROUP, UID, USER
from instar.server.files.certificates import PROXY_NAME, ProxyCertificate
from instar.server.settings import Settings


def authentication_data(
    settings: Settings, own_ca: Path, made: ProxyCertificate | None = None
) -> dict[str, str]:
    """Return the ConfigMap's data: the front proxies are those that are configured, as upstream, or
    this server itself by the certificate that was ``made`` for it."""
    clients = [own_ca] if settings.client_ca is None else [own_ca, settings.client_ca]
    data = {"client-ca-file": "".join(read_text(path) for path in clients)}
    proxy = settings.front_proxy
    if proxy is None and made is not None:
        proxy = FrontProxySettings(
            ca=made.ca,
            names=(PROXY_NAME,),
            user_headers=(USER,),
            uid_headers=(UID,),
            group_headers=(GROUP,),
            extra_prefixes=(EXTRA,),
        )
    return data if proxy is None else {**data, **_proxy_data(proxy)}


def _proxy_data(proxy: FrontProxySettings) -> dict[str, str]:
    data = {
        "requestheader-client-ca-file": read_text(proxy.ca),
        "requestheader-allowed-names": _json_list(proxy.names),
        "requestheader-username-headers": _json_list(proxy.user_headers),
        "requestheader-group-headers": _json_list(proxy.group_headers),
        "requestheader-extra-headers-prefix": _json_list(proxy.extra_prefixes),
    }
    if proxy.uid_headers:
        data["requestheader-uid-headers"] = _json_list(proxy.uid_headers)
    return data


def _json_list(names: tuple[str, ...]) -> str:
    return json.dumps(names, separators=(",", ":"))
