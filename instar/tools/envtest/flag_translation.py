"""From kube-apiserver's flags to those of ``instar serve``. Pure.

Every flag ends in one of two places: among the words our server is given, or among those that are
accepted without effect, of which whoever started it is told.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from instar.tools.envtest.flags import Flags

_ELSEWHERE = ("cert-dir", "etcd-servers", "etcd-prefix", "tls-cert-file", "tls-private-key-file")
"""What was read before, to find storage and certificate."""
_JOINED = {"authorization-mode", "api-audiences", "oidc-signing-algs"}
"""Lists that may be given in several flags, and that our own server takes in one."""
_REQUESTS_ARE_LOGGED = 3
"""The verbosity from which kube-apiserver logs each request."""


class Translated(NamedTuple):
    words: list[str]
    """For ``instar serve``."""
    ignored: list[str]
    """Flags, or parts of them, that are accepted and change nothing."""


def translate(
    flags: Flags, storage: str, tls: tuple[str, str], ours: Collection[str]
) -> Translated:
    """``tls``: certificate and key to serve; ``ours``: the flags our own server has."""
    left = {name: values for name, values in flags.items() if name not in _ELSEWHERE}
    host, port = _taken(left, "bind-address", "0.0.0.0"), _taken(left, "secure-port", "6443")
    words = [
        f"--listen={f'[{host}]' if ':' in host else host}:{port}",
        f"--storage={storage}",
        f"--tls-cert-file={tls[0]}",
        f"--tls-private-key-file={tls[1]}",
        "--gc=off",  # an API server alone collects nothing, and tests count on it
    ]
    ignored = []
    for network in filter(None, _taken(left, "service-cluster-ip-range", "").split(",")):
        if ":" in network:
            ignored.append(f"service-cluster-ip-range={network}")
        else:
            words.append(f"--service-cluster-ip-range={network}")
    if _taken(left, "logging-format", "text") == "json":
        words.append("--log=json")
    if _number(_taken(left, "v", "0")) >= _REQUESTS_ARE_LOGGED:
        words.append("--verbose")
    if _taken(left, "insecure-port", "0") not in ("0", ""):
        ignored.append("insecure-port")
    for name, values in sorted(left.items()):
        if f"--{name}" not in ours:
            ignored.append(name)
        elif name in _JOINED:
            words.append(f"--{name}={','.join(values)}")
        else:
            words += [f"--{name}={value}" for value in values]
    return Translated(words, ignored)


def _taken(left: Flags, name: str, otherwise: str) -> str:
    """The last value of a flag that is said another way."""
    values = left.pop(name, None)
    return values[-1] if values else otherwise


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
