"""Bootstrap tokens: ``ID.SECRET``, held by Secrets in ``kube-system``, with which nodes join.

``access/identities.py`` adds it to the token authenticators where ``--enable-bootstrap-token-auth``
is given. Tokens are checked against the stored Secret at each use, and never written here.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Callable
from datetime import datetime

from instar.base.json_values import Object
from instar.kube.access.attributes import AUTHENTICATED, User
from instar.server.identity.service_accounts import Lookup
from instar.server.identity.tokens import Audiences, Identified, matching_audiences

_NAMESPACE, _PREFIX, _TYPE = "kube-system", "bootstrap-token-", "bootstrap.kubernetes.io/token"
_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)")
"""RFC 3339, of which Python's parser accepts more than Go's."""
_DEFAULT_GROUP = "system:bootstrappers"
_USER_PREFIX = "system:bootstrap:"


class BootstrapTokens:
    """Authenticator of bootstrap tokens."""

    def __init__(self, lookup: Lookup, audiences: Audiences, now: Callable[[], float]) -> None:
        """``audiences`` are those of the API itself, for which these tokens are."""
        self._lookup, self._audiences, self._now = lookup, audiences, now

    async def identify(self, token: str, audiences: Audiences) -> Identified | None:
        parts = _TOKEN.fullmatch(token)
        common = matching_audiences(self._audiences, audiences)
        if parts is None or not common:
            return None
        name, private = parts.groups()
        secret = self._lookup("secrets", _NAMESPACE, f"{_PREFIX}{name}")
        if secret is None or secret["metadata"].get("deletionTimestamp"):
            return None
        groups = self._groups_of(secret, name, private)
        if groups is None:
            return None
        # Kept for no time: the token ends at its expiry, and with its Secret.
        return Identified(User(f"{_USER_PREFIX}{name}", (*groups, AUTHENTICATED)), common, 0.0)

    def _groups_of(self, secret: Object, name: str, private: str) -> list[str] | None:
        """Return the groups of a valid token; None if it is not."""
        held = _value(secret, "token-secret").encode()
        valid = (
            secret.get("type") == _TYPE
            and hmac.compare_digest(held, private.encode())
            and _value(secret, "token-id") == name
            and not self._has_expired(_value(secret, "expiration"))
            and _value(secret, "usage-bootstrap-authentication") == "true"
        )
        extra = _value(secret, "auth-extra-groups")
        more = extra.split(",") if extra else []
        if not valid or not all(map(_GROUP.fullmatch, more)):
            return None
        return sorted({_DEFAULT_GROUP, *more})

    def _has_expired(self, text: str) -> bool:
        """A time that cannot be read counts as past."""
        if not text:
            return False
        try:
            moment = datetime.fromisoformat(text) if _TIME.fullmatch(text) else None
        except ValueError:
            return True
        return moment is None or moment.timestamp() <= self._now()


def _value(secret: Object, key: str) -> str:
    try:
        raw = base64.b64decode((secret.get("data") or {}).get(key) or "")
    except (binascii.Error, ValueError, TypeError):
        return ""
    return raw.decode(errors="replace")
