"""Authentication and authorization flags of ``instar serve``: defines them and turns their values
into settings.

Called by ``cli/commands/serve.py``. A flag that kube-apiserver has too is named like
kube-apiserver's.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from instar.cli.shared.failure import CliFailure
from instar.kube.cel.time_text import parse_duration
from instar.server.access.identities import (
    DEFAULT_ISSUER,
    AccountSettings,
    FrontProxySettings,
    JwtSettings,
    NewUser,
)
from instar.server.identity.oidc.flags_set import is_given

_BOOLEANS = ("true", "false")
_SECOND = 1_000_000_000


def add_identity_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("authentication and authorization").add_argument
    add(
        *("--authorization", "--authorization-mode"),
        metavar="MODE,…",
        default="RBAC",
        help="authorizers in order: RBAC, AlwaysAllow, AlwaysDeny, Webhook (default: %(default)s)",
    )
    add(
        "--authorization-webhook-config-file",
        metavar="KUBECONFIG",
        type=Path,
        help="kubeconfig of the authorization webhook, for the mode Webhook",
    )
    add(
        "--authorization-webhook-cache-authorized-ttl",
        metavar="DURATION",
        default="5m0s",
        help="how long an allowed answer of it is cached",
    )
    add(
        "--authorization-webhook-cache-unauthorized-ttl",
        metavar="DURATION",
        default="30s",
        help="how long a denied answer of it is cached",
    )
    add(
        "--user",
        metavar="NAME[:GROUP,…]=KUBECONFIG",
        action="append",
        default=[],
        help="write a kubeconfig for this user, with a client certificate of the server's CA; a "
        "name may be one of Kubernetes' own, such as system:kube-scheduler",
    )
    add(
        "--anonymous-auth",
        choices=_BOOLEANS,
        help="accept requests without credentials as system:anonymous (default: true, unless the "
        "only mode is AlwaysAllow)",
    )
    add(
        *("--token-file", "--token-auth-file"),
        metavar="CSV",
        type=Path,
        help='file with lines of the form TOKEN,USER,UID[,"GROUPS"]',
    )
    add(
        *("--client-ca", "--client-ca-file"),
        metavar="PEM",
        type=Path,
        help="also trust client certificates of this CA",
    )
    add(
        "--enable-bootstrap-token-auth",
        choices=_BOOLEANS,
        nargs="?",
        const="true",
        default="false",
        help="accept tokens of Secrets of the type bootstrap.kubernetes.io/token in kube-system",
    )
    add(
        "--authentication-config",
        metavar="YAML",
        type=Path,
        help="AuthenticationConfiguration: token issuers and anonymous access",
    )
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
        help=f"issuer of our tokens; repeated: further accepted issuers (default: "
        f"{DEFAULT_ISSUER})",
    )
    add(
        "--service-account-signing-key-file",
        metavar="PEM",
        type=Path,
        help="private key that signs tokens (default: one created in --cert-dir)",
    )
    add(
        "--service-account-key-file",
        metavar="PEM",
        type=Path,
        action="append",
        default=[],
        help="further keys that verify tokens, besides the signing key; may be repeated",
    )
    add(
        "--service-account-max-token-expiration",
        metavar="DURATION",
        default="0s",
        help="the longest lifetime of a token; 0s is no limit",
    )
    add(
        "--service-account-extend-token-expiration",
        choices=_BOOLEANS,
        default="true",
        help="extend tokens of Pods to a year, for clients that never reload them",
    )
    add(
        "--service-account-jwks-uri",
        metavar="URL",
        default="",
        help="URL of our keys in the discovery document (default: /openid/v1/jwks of this server)",
    )
    add("--service-account-lookup", choices=_BOOLEANS, default="true", help="always true here")
    add(
        "--api-audiences",
        metavar="NAME,…",
        default="",
        help="audiences that tokens must name (default: the issuers)",
    )


def _add_oidc_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("one OIDC issuer").add_argument
    add(
        "--oidc-issuer-url", metavar="URL", default="", help="issuer of accepted tokens; https only"
    )
    add("--oidc-client-id", metavar="ID", default="", help="the audience they must name")
    add("--oidc-username-claim", metavar="CLAIM", default="sub", help="claim with the user name")
    add(
        "--oidc-username-prefix",
        metavar="TEXT",
        default="",
        help="prefix of user names; - is none (default: ISSUER# unless the claim is email)",
    )
    add(
        "--oidc-groups-claim", metavar="CLAIM", default="", help="claim with the groups of the user"
    )
    add("--oidc-groups-prefix", metavar="TEXT", default="", help="prefix of group names")
    add("--oidc-ca-file", metavar="PEM", type=Path, help="CA of the issuer's certificate")
    add("--oidc-signing-algs", metavar="ALG,…", default="RS256", help="algorithms accepted")
    add(
        "--oidc-required-claim",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="tokens without it are refused; may be repeated",
    )


def _add_proxy_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("a front proxy that authenticates").add_argument
    add(
        "--requestheader-client-ca-file",
        metavar="PEM",
        type=Path,
        help="CA of the proxy's certificate; without it no proxy is trusted",
    )
    add(
        "--requestheader-allowed-names",
        metavar="NAME,…",
        default="",
        help="common names of proxies (default: any that the authority signed)",
    )
    for name, told in (
        ("username-headers", "headers with the user's name"),
        ("uid-headers", "headers with the user's UID"),
        ("group-headers", "headers with a group each"),
        ("extra-headers-prefix", "how headers with more about the user begin"),
    ):
        add(f"--requestheader-{name}", metavar="NAME,…", default="", help=told)


def identity_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return fields of ``Settings`` by name."""
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
        "bootstrap_tokens": args.enable_bootstrap_token_auth == "true",
        "tokens_of_others": _jwt(args),
        "front_proxy": _front_proxy(args),
        "users": () if args.worker_of is not None else tuple(map(new_user, args.user)),
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


def new_user(text: str) -> NewUser:
    subject, equals, path = text.partition("=")
    parts = subject.split(":")
    taken = _name_parts(parts)
    name, groups = ":".join(parts[:taken]), ":".join(parts[taken:])
    if not name or not equals or not path:
        raise CliFailure(f"--user {text}: expected NAME[:GROUP,…]=KUBECONFIG", code=2)
    return NewUser(name, _listed(groups), Path(path))


def _name_parts(parts: list[str]) -> int:
    """Return how many of the colon-separated parts belong to the user name: Kubernetes' own users,
    such as ``system:kube-scheduler`` and ``system:node:worker-1``, have colons in their names.
    """
    if parts[0] != "system" or len(parts) == 1:
        return 1
    return {"serviceaccount": 4, "node": 3}.get(parts[1], 2)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _seconds(args: argparse.Namespace, flag: str) -> float:
    text = getattr(args, flag.replace("-", "_"))
    found = parse_duration(text)
    if found is None or found < 0:
        raise CliFailure(f"--{flag} {text}: expected a duration such as 90s or 1h30m", code=2)
    return found / _SECOND
