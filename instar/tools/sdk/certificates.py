"""Makes a serving certificate for a webhook without cert-manager, signed by a CA made for it.

``instar webhook --self-signed`` and ``instar.testing`` call it. The CA's key is not stored, so the
CA cannot sign anything else.
"""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path

from instar.base.certificates import Authority, KeyPair
from instar.base.fast_dataclass import dataclass

_VALID_DAYS = 3650


@dataclass(frozen=True, slots=True)
class Issued:
    """A serving certificate with its key, and the CA certificate that signed it."""

    pem: KeyPair
    ca: bytes

    @property
    def bundle(self) -> str:
        """Return the CA certificate in base64, as ``caBundle`` of a CRD."""
        return base64.b64encode(self.ca).decode()

    def write(self, cert: Path, key: Path) -> None:
        cert.write_bytes(self.pem.cert)
        key.touch(mode=0o600)
        key.chmod(0o600)
        key.write_bytes(self.pem.key)


def self_signed(host: str, *, days: int = _VALID_DAYS) -> Issued:
    valid = timedelta(days=days)
    authority = Authority.make("instar webhook CA", valid)
    return Issued(authority.server(host, _names(host), valid), authority.pem.cert)


def _names(host: str) -> list[str]:
    """Return the DNS names: a service is called as ``name.namespace.svc``; the longer form is
    added.
    """
    return [host, f"{host}.cluster.local"] if host.endswith(".svc") else [host]
