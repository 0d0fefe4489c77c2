"""Flags of ``instar serve`` about who somebody is and what they may do → settings.

Names are kube-apiserver's wherever it has the flag.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from instar.cel.times import parse_duration
from instar.cli.failure import CliFailure
from instar.identity.oidc.given import is_given
from instar.server.access.identities import (
    DEFAULT_ISSUER,
    AccountSettings,
    FrontProxySettings,
    JwtSettings,
    NewUser,
)

_BOOLEANS = ("true", "false")
_SECOND = 1_000_000_000


def add_identity_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("who asks, and what they may do").add_argument
    add(
        *("--authorization", "--authorization-mode"),
        metavar="MODE,…",
        default="RBAC",
        help="who decides, in order: RBAC, AlwaysAllow, AlwaysDeny, Webhook (default: %(default)s)",
    )
    add("--authorization-webhook-config-file", metavar="KUBECONFIG", type=Path)
    add("--authorization-webhook-cache-authorized-ttl", metavar="DURATION", default="5m0s")
    add("--authorization-webhook-cache-unauthorized-ttl", metavar="DURATION", default="30s")
    add(
        "--user",
        metavar="NAME[:GROUP,…]=KUBECONFIG",
        action="append",
        default=[],
        help="write a kubeconfig for this user, with a certificate of our own authority",
    )
    add("--anonymous-auth", metavar="true|false", choices=_BOOLEANS)
    add(
        *("--token-file", "--token-auth-file"),
        metavar="CSV",
        type=Path,
        help='lines of token,user,uid[,"groups"]',
    )
    add(
        *("--client-ca", "--client-ca-file"),
        metavar="PEM",
        type=Path,
        help="also trust client certificates of this CA",
    )
    add("--authentication-config", metavar="YAML", type=Path, help="issuers of tokens, anonymous")
    _add_account_arguments(parser)
    _add_oidc_arguments(parser)
    _add_proxy_arguments(parser)


def _add_account_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("tokens of ServiceAccounts").add_argument
    add("--service-account-issuer", metavar="URL", action="append", default=[])
    add("--service-account-signing-key-file", metavar="PEM", type=Path)
    add("--service-account-key-file", metavar="PEM", type=Path, action="append", default=[])
    add("--service-account-max-token-expiration", metavar="DURATION", default="0s")
    add("--service-account-extend-token-expiration", choices=_BOOLEANS, default="true")
    add("--service-account-jwks-uri", metavar="URL", default="")
    add("--service-account-lookup", choices=_BOOLEANS, default="true", help="always true here")
    add("--api-audiences", metavar="NAME,…", default="")


def _add_oidc_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("one OIDC issuer").add_argument
    for name in ("issuer-url", "client-id", "username-prefix", "groups-claim", "groups-prefix"):
        add(f"--oidc-{name}", default="")
    add("--oidc-username-claim", default="sub")
    add("--oidc-ca-file", metavar="PEM", type=Path)
    add("--oidc-signing-algs", metavar="ALG,…", default="RS256")
    add("--oidc-required-claim", metavar="NAME=VALUE", action="append", default=[])


def _add_proxy_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("a front proxy that authenticates").add_argument
    add("--requestheader-client-ca-file", metavar="PEM", type=Path)
    add("--requestheader-allowed-names", metavar="NAME,…", default="")
    for name in ("username-headers", "uid-headers", "group-headers", "extra-headers-prefix"):
        add(f"--requestheader-{name}", metavar="NAME,…", default="")


def identity_settings(args: argparse.Namespace) -> dict[str, Any]:
    """``Settings`` by name."""
    if args.service_account_lookup == "false":
        raise CliFailure("--service-account-lookup false: accounts are always looked up", code=2)
    return {
        "token_file": args.token_file,
        "client_ca": args.client_ca,
        "authorization": args.authorization,
        "authorization_webhook": args.authorization_webhook_config_file,
        "authorization_webhook_seconds": (
            _seconds(args, "authorization-webhook-cache-authorized-ttl"),
            _seconds(args, "authorization-webhook-cache-unauthorized-ttl"),
        ),
        "anonymous": None if args.anonymous_auth is None else args.anonymous_auth == "true",
        "accounts": _accounts(args),
        "tokens_of_others": _jwt(args),
        "front_proxy": _front_proxy(args),
        "users": () if args.worker_of is not None else tuple(map(_user, args.user)),
    }


def _accounts(args: argparse.Namespace) -> AccountSettings:
    seconds = int(_seconds(args, "service-account-max-token-expiration"))
    if seconds and not 3600 <= seconds <= 2**32:
        raise CliFailure(
            "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds",
            code=2,
        )
    return AccountSettings(
        issuers=tuple(args.service_account_issuer) or (DEFAULT_ISSUER,),
        audiences=_listed(args.api_audiences),
        signing_key=args.service_account_signing_key_file,
        keys=tuple(args.service_account_key_file),
        longest_seconds=seconds,
        extends=args.service_account_extend_token_expiration == "true",
        jwks_uri=args.service_account_jwks_uri,
    )


def _jwt(args: argparse.Namespace) -> JwtSettings:
    flags = {
        name.removeprefix("oidc_"): value
        for name, value in vars(args).items()
        if name.startswith("oidc_")
    }
    return JwtSettings(config=args.authentication_config, oidc=flags if is_given(flags) else {})


def _front_proxy(args: argparse.Namespace) -> FrontProxySettings | None:
    if args.requestheader_client_ca_file is None:
        return None
    return FrontProxySettings(
        ca=args.requestheader_client_ca_file,
        names=_listed(args.requestheader_allowed_names),
        user_headers=_listed(args.requestheader_username_headers),
        uid_headers=_listed(args.requestheader_uid_headers),
        group_headers=_listed(args.requestheader_group_headers),
        extra_prefixes=_listed(args.requestheader_extra_headers_prefix),
    )


def _user(text: str) -> NewUser:
    who, equals, path = text.partition("=")
    name, _, groups = who.partition(":")
    if not name or not equals or not path:
        raise CliFailure(f"--user {text}: expected NAME[:GROUP,…]=KUBECONFIG", code=2)
    return NewUser(name, _listed(groups), Path(path))


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _seconds(args: argparse.Namespace, flag: str) -> float:
    text = getattr(args, flag.replace("-", "_"))
    found = parse_duration(text)
    if found is None or found < 0:
        raise CliFailure(f"--{flag} {text}: expected a duration such as 90s or 1h30m", code=2)
    return found / _SECOND
