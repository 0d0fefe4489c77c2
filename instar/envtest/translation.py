"""From kube-apiserver's flags to those of ``instar serve``. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from instar.envtest.flags import Flags

_OWN = {
    *("bind-address", "secure-port", "cert-dir", "etcd-servers", "etcd-prefix", "logging-format"),
    *("service-cluster-ip-range", "tls-cert-file", "tls-private-key-file", "v", "insecure-port"),
}
"""What is said another way, below."""
_JOINED = {"authorization-mode", "api-audiences", "oidc-signing-algs"}
"""Lists that may be given in several flags, and that our own server takes in one."""


class Translated(NamedTuple):
    words: list[str]
    """For ``instar serve``."""
    ignored: list[str]
    """Flags that are accepted and change nothing."""


def translate(
    flags: Flags, storage: str, tls: tuple[str, str], ours: Collection[str]
) -> Translated:
    """``tls``: certificate and key to serve; ``ours``: the flags our own server has."""
    host, port = _last(flags, "bind-address", "0.0.0.0"), _last(flags, "secure-port", "6443")
    words = [
        f"--listen={f'[{host}]' if ':' in host else host}:{port}",
        f"--storage={storage}",
        f"--tls-cert-file={tls[0]}",
        f"--tls-private-key-file={tls[1]}",
        "--gc=off",  # an API server alone collects nothing, and tests count on it
    ]
    network = _last(flags, "service-cluster-ip-range", "").partition(",")[0]
    if network and ":" not in network:
        words.append(f"--service-cluster-ip-range={network}")
    if _last(flags, "logging-format", "text") == "json":
        words.append("--log=json")
    ignored = []
    for name, values in sorted(flags.items()):
        if name in _OWN:
            continue
        if f"--{name}" not in ours:
            ignored.append(name)
        elif name in _JOINED:
            words.append(f"--{name}={','.join(values)}")
        else:
            words += [f"--{name}={value}" for value in values]
    return Translated(words, ignored)


def _last(flags: Flags, name: str, otherwise: str) -> str:
    return flags[name][-1] if flags.get(name) else otherwise
