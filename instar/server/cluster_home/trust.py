"""Which certificates and headers of the main cluster identify users, as settings of this server.

``home.py`` loads them before the port opens and follows their ConfigMap; ``lifecycle`` puts what
has changed into use. CAs are kept as files beside the server's own certificates, because TLS reads
files. A flag takes precedence over the ConfigMap.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from instar.server.access.identities import FrontProxySettings
from instar.server.cluster_home.authentication_data import AuthenticationData
from instar.server.files.certificates import write_private
from instar.server.settings import Settings

_CLIENT_CA, _PROXY_CA = "cluster-clients.crt", "cluster-proxies.crt"


def trusting(settings: Settings, data: AuthenticationData, folder: Path) -> Settings:
    """Return the settings with what the main cluster announces; writes the files of its CAs."""
    folder.mkdir(parents=True, exist_ok=True)
    if settings.client_ca is None and data.client_ca:
        settings = replace(settings, client_ca=_write(folder / _CLIENT_CA, data.client_ca))
    proxies = data.proxies
    if settings.front_proxy is not None or proxies is None:
        return settings
    return replace(
        settings,
        front_proxy=FrontProxySettings(
            ca=_write(folder / _PROXY_CA, proxies.ca),
            names=proxies.names,
            user_headers=proxies.user_headers,
            uid_headers=proxies.uid_headers,
            group_headers=proxies.group_headers,
            extra_prefixes=proxies.extra_prefixes,
        ),
    )


def _write(path: Path, pem: bytes) -> Path:
    if not path.exists() or path.read_bytes() != pem:
        write_private(path, pem)
    return path
