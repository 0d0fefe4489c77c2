"""Translates kube-apiserver's flags to those of ``instar serve``. Pure.

Called by ``cli/serving/kube_apiserver.py``. Every flag is either translated or listed as accepted
without effect, which is printed at start.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from instar.tools.envtest.flags import EXIT_WITH_PARENT, Flags

_ELSEWHERE = ("cert-dir", "etcd-servers", "etcd-prefix", "tls-cert-file", "tls-private-key-file")
"""Flags for storage and certificates, which ``cli/serving/kube_apiserver.py`` handles."""
_JOINED = {"authorization-mode", "api-audiences", "oidc-signing-algs"}
"""List flags that may be repeated, and that ``instar serve`` takes once."""
MEMORY = "memory:"
_HISTORY = "64Mi"
"""Limit of the watch history: a suite often reinstalls large CRDs, but watches from recent
revisions only."""
_SERVICE_ACCOUNT = "ServiceAccount"
"""An admission plugin that is on by default in kube-apiserver but not in ``instar serve``."""
_REQUESTS_ARE_LOGGED = 3
"""The verbosity from which kube-apiserver logs each request."""


class Translated(NamedTuple):
    """Flags for ``instar serve``, and kube-apiserver's flags without effect."""

    words: list[str]
    """Arguments for ``instar serve``."""
    ignored: list[str]
    """Flags, or parts of them, that are accepted without effect."""


def translate(
    flags: Flags, storage: str, tls: tuple[str, str], ours: Collection[str]
) -> Translated:
    """Return the translated flags. ``tls``: certificate and key to serve; ``ours``: the flags of
    ``instar serve``.
    """
    left = {name: values for name, values in flags.items() if name not in _ELSEWHERE}
    host, port = _pop_flag(left, "bind-address", "0.0.0.0"), _pop_flag(left, "secure-port", "6443")
    words = [
        f"--listen={f'[{host}]' if ':' in host else host}:{port}",
        f"--storage={storage}",
        f"--tls-cert-file={tls[0]}",
        f"--tls-private-key-file={tls[1]}",
        # kube-apiserver alone has no controllers, and suites finalize what they delete.
        f"--controllers={_joined(left, 'controllers')}",
    ]
    if storage == MEMORY and "history-size" not in left:
        words.append(f"--history-size={_HISTORY}")
    if not left.keys() & {"authorization-mode", "authorization-config"}:
        words.append("--authorization-mode=AlwaysAllow")
    if _pop_flag(left, EXIT_WITH_PARENT, "false") == "true":
        words.append(f"--{EXIT_WITH_PARENT}")
    if _SERVICE_ACCOUNT not in _split(left, "disable-admission-plugins"):
        words.append(f"--enable-admission-plugins={_SERVICE_ACCOUNT}")
    ignored = []
    for network in filter(None, _pop_flag(left, "service-cluster-ip-range", "").split(",")):
        if ":" in network:
            ignored.append(f"service-cluster-ip-range={network}")
        else:
            words.append(f"--service-cluster-ip-range={network}")
    if _pop_flag(left, "logging-format", "text") == "json":
        words.append("--log=json")
    if _number(_pop_flag(left, "v", "0")) >= _REQUESTS_ARE_LOGGED:
        words.append("--verbose")
    if _pop_flag(left, "insecure-port", "0") not in ("0", ""):
        ignored.append("insecure-port")
    for name, values in sorted(left.items()):
        if f"--{name}" not in ours:
            ignored.append(name)
        elif name in _JOINED:
            words.append(f"--{name}={','.join(values)}")
        else:
            words += [f"--{name}={value}" for value in values]
    return Translated(words, ignored)


def _pop_flag(left: Flags, name: str, otherwise: str) -> str:
    """Return and remove the last value of a flag."""
    values = left.pop(name, None)
    return values[-1] if values else otherwise


def _joined(left: Flags, name: str) -> str:
    return ",".join(left.pop(name, []))


def _split(left: Flags, name: str) -> list[str]:
    return [part.strip() for value in left.get(name, []) for part in value.split(",")]


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
