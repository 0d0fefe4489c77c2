"""Console sessions as encrypted cookie values; nothing is stored on the server.

Used by ``authentication.py`` and ``oidc.py``. A value is encrypted by AES-GCM with a key derived
from the server's secret, so a stolen cookie reveals no token and a changed cookie is invalid.
"""

from __future__ import annotations

import os
import zlib
from typing import Any

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from instar.base.fast_dataclass import dataclass
from instar.server.identity import jwt

LONGEST_SECONDS = 12 * 3600
_NONCE_BYTES = 12
_SESSION_BUFFER = 64 << 10
"""Initial size of the buffer for a decompressed session."""
_PURPOSE = b"instar console session 1"


class NoSession(Exception):
    """The cookie value is invalid: changed, truncated, or encrypted with another secret."""


class Ended(Exception):
    """The session has expired."""


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in visitor, as the encrypted cookie has it."""

    how: str
    """``token``, ``oidc`` or ``kubeconfig``."""
    token: str
    """The user's own credential; empty where the host holds it (``kubeconfig``)."""
    expires: float
    """Seconds since 1970."""


class Sealer:
    """Encrypts and decrypts JSON content for one purpose."""

    def __init__(self, secret: bytes, purpose: bytes = _PURPOSE) -> None:
        derive = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose)
        self._cipher = AESGCM(derive.derive(secret))
        self._purpose = purpose

    def seal(self, content: dict[str, Any]) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        packed = zlib.compress(orjson.dumps(content))
        return jwt.encode_base64url(nonce + self._cipher.encrypt(nonce, packed, self._purpose))

    def open(self, text: str, now: float) -> dict[str, Any]:
        """Decrypt the content, which must have ``expires``. Raises ``NoSession`` and ``Ended``."""
        try:
            data = jwt.decode_base64url(text)
            packed = self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], self._purpose)
        except (ValueError, InvalidTag) as error:
            raise NoSession from error
        # Authenticated, so its content was written by us.
        content: dict[str, Any] = orjson.loads(zlib.decompress(packed, bufsize=_SESSION_BUFFER))
        if content["expires"] <= now:
            raise Ended
        return content


class Sessions:
    """Encodes sessions as cookie values."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def seal(self, session: Session) -> str:
        return self._sealer.seal(
            {"how": session.how, "token": session.token, "expires": session.expires}
        )

    def open(self, text: str, now: float) -> Session:
        """Decode a session. Raises ``NoSession`` and ``Ended``."""
        content = self._sealer.open(text, now)
        return Session(content["how"], content["token"], content["expires"])


def session_of(how: str, token: str, now: float) -> Session:
    """Return a session that expires with its token, after one working day at most."""
    until = now + LONGEST_SECONDS
    shown = jwt.read(token) if token else None
    own = None if shown is None else jwt.seconds_of(shown.claims.get("exp"))
    return Session(how, token, until if own is None else min(until, own))
