"""Stand-in for the kube-apiserver binary in envtest: translates kube-apiserver's flags to those of
``instar serve``.

An envtest suite starts it through the folder that ``instar envtest`` writes.
"""

from __future__ import annotations

import ssl
import sys
import urllib.request
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from instar.base.field_errors import go_quote
from instar.cli.main import main as instar
from instar.cli.main import parser_of
from instar.cli.serving.process_exit import leave
from instar.tools.envtest.etcd_stub import ANSWER
from instar.tools.envtest.feature_gates import BadFeatureGate, changed_gates
from instar.tools.envtest.flag_translation import MEMORY, translate
from instar.tools.envtest.flags import (
    APISERVER,
    EXIT_WITH_PARENT,
    Flags,
    UnknownFlag,
    help_text,
    parse_flags,
)

VERSION = "v1.36.4"
"""The Kubernetes version that this server reproduces."""
_GONE = ("insecure-port", "insecure-bind-address", EXIT_WITH_PARENT)
"""Accepted but not shown in the help, because suites that find them there would use them."""
_ASK_SECONDS = 5.0
_WEEK = timedelta(days=7)


def main(argv: Sequence[str] | None = None) -> int:
    try:
        flags = parse_flags(sys.argv[1:] if argv is None else argv, APISERVER)
    except UnknownFlag as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    if "help" in flags or "h" in flags:
        print(help_text("kube-apiserver", APISERVER, without=_GONE))
        return 0
    if "version" in flags:
        print(f"Kubernetes {VERSION}")
        return 0
    if not flags.get("etcd-servers"):
        print('"command failed" err="--etcd-servers must be specified"', file=sys.stderr)
        return 1
    try:
        changed_gates(flags.get("feature-gates", []))
    except BadFeatureGate as error:
        print(f'"command failed" err={go_quote(str(error))}', file=sys.stderr)
        return 1
    with TemporaryDirectory(prefix="instar-envtest-") as folder:
        ours = _instar_flags()
        words, ignored = translate(flags, _storage(flags), _certificate(flags, folder), ours)
        if ignored:
            told = " ".join(f"--{name}" for name in ignored)
            print(f"instar: accepted without effect: {told}", file=sys.stderr)
        return instar(["serve", *words], owns_process=argv is None)


def _instar_flags() -> set[str]:
    return set(parser_of("serve")._option_string_actions)


def _storage(flags: Flags) -> str:
    """Return memory storage if etcd is the stand-in too, else the address of the real etcd."""
    servers = [part for value in flags["etcd-servers"] for part in value.split(",")]
    try:
        asking = urllib.request.urlopen(
            f"{servers[0]}/health", timeout=_ASK_SECONDS, context=_etcd_tls(flags)
        )
        with asking as answer:
            if answer.read() == ANSWER:
                return MEMORY
    except (OSError, ValueError):
        pass  # a real cluster may come up later; our stand-in would be up
    hosts = ",".join(server.partition("://")[2].rstrip("/") for server in servers)
    prefix = flags.get("etcd-prefix", ["/registry"])[-1]
    return f"etcd://{hosts}/{prefix.strip('/')}"


def _etcd_tls(flags: Flags) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=flags.get("etcd-cafile", [None])[-1])
    if flags.get("etcd-certfile") and flags.get("etcd-keyfile"):
        context.load_cert_chain(flags["etcd-certfile"][-1], flags["etcd-keyfile"][-1])
    return context


def _certificate(flags: Flags, folder: str) -> tuple[str, str]:
    """Return the given certificate, the one in the certificate folder, or a new one created
    there.
    """
    if flags.get("tls-cert-file") and flags.get("tls-private-key-file"):
        return flags["tls-cert-file"][-1], flags["tls-private-key-file"][-1]
    place = Path(flags["cert-dir"][-1]) if flags.get("cert-dir") else Path(folder)
    cert, key = place / "apiserver.crt", place / "apiserver.key"
    if not (cert.exists() and key.exists()):
        # Imported here, because envtest usually brings its own certificates.
        from instar.base.certificates import Authority

        host = flags.get("bind-address", ["127.0.0.1"])[-1]
        names = list(dict.fromkeys(["localhost", "127.0.0.1", host]))
        made = Authority.make("instar envtest", _WEEK).server("localhost", names, _WEEK)
        place.mkdir(parents=True, exist_ok=True)
        cert.write_bytes(made.cert)
        key.touch(mode=0o600)
        key.write_bytes(made.key)
    return str(cert), str(key)


if __name__ == "__main__":
    leave(main())
