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
    add(
        "--authorization-webhook-config-file",
        metavar="KUBECONFIG",
        type=Path,
        help="whom the mode Webhook asks",
    )
    add(
        "--authorization-webhook-cache-authorized-ttl",
        metavar="DURATION",
        default="5m0s",
        help="how long its yes is believed",
    )
    add(
        "--authorization-webhook-cache-unauthorized-ttl",
        metavar="DURATION",
        default="30s",
        help="how long its no is believed",
    )
    add(
        "--user",
        metavar="NAME[:GROUP,…]=KUBECONFIG",
        action="append",
        default=[],
        help="write a kubeconfig for this user, with a certificate of our own authority",
    )
    add(
        "--anonymous-auth",
        metavar="true|false",
        choices=_BOOLEANS,
        help="who shows no credential is system:anonymous (default: true, unless all is allowed)",
    )
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
    add(
        "--service-account-issuer",
        metavar="URL",
        action="append",
        default=[],
        help="who our tokens say they are from; the first signs, all are accepted",
    )
    add(
        "--service-account-signing-key-file",
        metavar="PEM",
        type=Path,
        help="the key that signs (default: one of our own making)",
    )
    add(
        "--service-account-key-file",
        metavar="PEM",
        type=Path,
        action="append",
        default=[],
        help="keys whose tokens are accepted; may be repeated",
    )
    add(
        "--service-account-max-token-expiration",
        metavar="DURATION",
        default="0s",
        help="the longest life of a token; 0s: as long as is asked for",
    )
    add(
        "--service-account-extend-token-expiration",
        choices=_BOOLEANS,
        default="true",
        help="tokens that pods ask for live for a year, so that old clients go on working",
    )
    add(
        "--service-account-jwks-uri",
        metavar="URL",
        default="",
        help="where the discovery document says our keys are",
    )
    add("--service-account-lookup", choices=_BOOLEANS, default="true", help="always true here")
    add(
        "--api-audiences",
        metavar="NAME,…",
        default="",
        help="for whom a token must be made to be accepted (default: the issuer)",
    )


def _add_oidc_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("one OIDC issuer").add_argument
    add("--oidc-issuer-url", metavar="URL", default="", help="whose tokens are accepted")
    add("--oidc-client-id", metavar="NAME", default="", help="for whom they must be made")
    add("--oidc-username-prefix", metavar="TEXT", default="", help="before user names; -: none")
    add("--oidc-groups-claim", metavar="NAME", default="", help="the claim that lists groups")
    add("--oidc-groups-prefix", metavar="TEXT", default="", help="before names of groups")
    add(
        "--oidc-username-claim",
        metavar="NAME",
        default="sub",
        help="the claim that is the user name",
    )
    add(
        "--oidc-ca-file",
        metavar="PEM",
        type=Path,
        help="the authority of the issuer (default: those of the system)",
    )
    add(
        "--oidc-signing-algs",
        metavar="ALG,…",
        default="RS256",
        help="with which its tokens may be signed",
    )
    add(
        "--oidc-required-claim",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a claim a token must have; may be repeated",
    )


def _add_proxy_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("a front proxy that authenticates").add_argument
    add(
        "--requestheader-client-ca-file",
        metavar="PEM",
        type=Path,
        help="who signs the certificate of the proxy",
    )
    add(
        "--requestheader-allowed-names",
        metavar="NAME,…",
        default="",
        help="common names its certificate may have (default: any)",
    )
    for name, what in (
        ("username-headers", "headers that name the user"),
        ("uid-headers", "headers with the user's uid"),
        ("group-headers", "headers that list groups"),
        ("extra-headers-prefix", "how headers with more about the user begin"),
    ):
        add(f"--requestheader-{name}", metavar="NAME,…", default="", help=what)


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
