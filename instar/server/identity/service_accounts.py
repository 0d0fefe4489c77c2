"""Claims of ServiceAccount tokens: what a new token contains, and whether a token is still valid.

``issuer.py`` calls these pure functions: stored objects are looked up by a function that is passed
in, and the time is an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from instar.base.field_errors import go_quote
from instar.base.json_values import Object
from instar.kube.access.attributes import AUTHENTICATED, User, account_groups, account_name
from instar.server.identity.jwt import seconds_of, text_of, texts_of
from instar.server.identity.tokens import Audiences, TokenRejected, matching_audiences

PRIVATE = "kubernetes.io"
"""Claim that holds namespace, account and bound object of a token."""
_CLOCK_LEEWAY = 60.0
"""Seconds by which the clocks of servers may differ."""
_DELETED_SECONDS = 60.0
"""Seconds after its deletionTimestamp in which an object still makes a token valid."""
_EXTRA = "authentication.kubernetes.io"
CREDENTIAL_ID = f"{_EXTRA}/credential-id"

Lookup = Callable[[str, str, str], Object | None]
"""(plural, namespace, name) → the stored object."""
BOUND = {"pod": "pods", "secret": "secrets", "node": "nodes"}


class BoundObject(NamedTuple):
    """An object that a token is bound to: without it the token is invalid."""

    claim: str
    """``pod``, ``secret`` or ``node``."""
    name: str
    uid: str


class TokenRequestSpec(NamedTuple):
    """What a new token is requested for."""

    namespace: str
    account: str
    uid: str
    audiences: Audiences
    seconds: int
    bound: tuple[BoundObject, ...] = ()
    warn_after: int = 0


def claims_of(wish: TokenRequestSpec, issuer: str, now: int, token_id: str) -> dict[str, Any]:
    """The claims of a new token."""
    private: dict[str, Any] = {
        "namespace": wish.namespace,
        "serviceaccount": {"name": wish.account, "uid": wish.uid},
    }
    for claim, name, uid in wish.bound:
        private[claim] = {"name": name, "uid": uid}
    if wish.warn_after:
        private["warnafter"] = now + wish.warn_after
    return {
        "iss": issuer,
        "sub": account_name(wish.namespace, wish.account),
        "aud": list(wish.audiences),
        "exp": now + wish.seconds,
        "iat": now,
        "nbf": now,
        "jti": token_id,
        PRIVATE: private,
    }


def check_times(claims: dict[str, Any], now: float) -> None:
    expires, begins = seconds_of(claims.get("exp")), seconds_of(claims.get("nbf"))
    issued = seconds_of(claims.get("iat"))
    if expires is None or now - _CLOCK_LEEWAY > expires:
        raise TokenRejected("service account token has expired")
    if begins is not None and now + _CLOCK_LEEWAY < begins:
        raise TokenRejected("service account token is not valid yet")
    if issued is not None and now + _CLOCK_LEEWAY < issued:
        raise TokenRejected("service account token is issued in the future")


def check_audiences(claims: dict[str, Any], asked: Audiences) -> Audiences:
    given = texts_of(claims.get("aud"))
    common = matching_audiences(given, asked)
    if not common:
        raise TokenRejected(
            f"token audiences {_go_array(given)} is invalid "
            f"for the target audiences {_go_array(asked)}"
        )
    return common


def _go_array(texts: Audiences) -> str:
    return f"[{' '.join(map(go_quote, texts))}]"


def account_of(claims: dict[str, Any], lookup: Lookup, now: float) -> User:
    """The account of a token, if the account and all bound objects exist with the same UIDs."""
    private = claims.get(PRIVATE)
    if not isinstance(private, dict):
        raise TokenRejected("service account token has no claims of its own")
    namespace = text_of(private.get("namespace"))
    name, uid = _name_and_uid(private.get("serviceaccount"))
    if claims.get("sub") != account_name(namespace, name):
        raise TokenRejected("service account token is for another subject")
    account = lookup("serviceaccounts", namespace, name)
    if account is None:
        raise TokenRejected(f"serviceaccounts {go_quote(name)} not found")
    actual = text_of(account["metadata"].get("uid"))
    if actual != uid:
        raise TokenRejected(f"service account UID ({actual}) does not match claim ({uid})")
    if _long_deleted(account, now):
        raise TokenRejected("service account token has been invalidated")
    extra = {CREDENTIAL_ID: (f"JTI={text_of(claims.get('jti'))}",)}
    for claim, plural in BOUND.items():
        if claim not in private:
            continue
        bound, bound_uid = _name_and_uid(private[claim])
        if claim != "node" or "pod" not in private:  # the node of a pod is informative only
            inside = namespace if claim != "node" else ""
            _check_bound(lookup, plural, inside, bound, bound_uid, now)
        if claim != "secret":
            extra |= {
                f"{_EXTRA}/{claim}-name": (bound,),
                f"{_EXTRA}/{claim}-uid": (bound_uid,),
            }
    return User(
        account_name(namespace, name), (*account_groups(namespace), AUTHENTICATED), uid, extra
    )


def _check_bound(
    lookup: Lookup, plural: str, namespace: str, name: str, uid: str, now: float
) -> None:
    found = lookup(plural, namespace, name)
    gone = found is None or found["metadata"].get("uid") != uid or _long_deleted(found, now)
    if gone:
        raise TokenRejected("service account token has been invalidated")


def _name_and_uid(value: Any) -> tuple[str, str]:
    if not isinstance(value, dict):
        return "", ""
    return text_of(value.get("name")), text_of(value.get("uid"))


def _long_deleted(obj: Object, now: float) -> bool:
    text = obj["metadata"].get("deletionTimestamp")
    if not text:
        return False
    try:
        moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except (TypeError, ValueError):
        return True
    return now - moment.timestamp() > _DELETED_SECONDS
