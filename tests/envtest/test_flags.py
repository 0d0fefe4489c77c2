"""Every flag of kube-apiserver is honoured or accepted with a note; none is lost."""

from __future__ import annotations

import re

import pytest

from instar.cli.main import parser_of
from instar.tools.envtest.flag_translation import translate
from instar.tools.envtest.flags import APISERVER, parse_flags
from tests.support.shared import SHARED, demand_shared

REFERENCE = SHARED / "reference" / "access.md"
TLS = ("tls.crt", "tls.key")
READ_BEFORE = {"cert-dir", "etcd-prefix", "etcd-servers", "tls-cert-file", "tls-private-key-file"}
ANOTHER_WAY = {
    "bind-address": ("::1", "--listen=[::1]:6443"),
    "secure-port": ("1234", "--listen=0.0.0.0:1234"),
    "logging-format": ("json", "--log=json"),
    "service-cluster-ip-range": ("10.1.0.0/24", "--service-cluster-ip-range=10.1.0.0/24"),
    "v": ("4", "--verbose"),
    "controllers": ("namespace,-garbage", "--controllers=namespace,-garbage"),
    "insecure-port": ("0", ""),
    "exit-with-parent": ("true", "--exit-with-parent"),
}
"""A value for each, and the word it becomes; the last says what is so anyhow."""
VALUES = {
    "advertise-address": "10.0.0.1",
    "anonymous-auth": "true",
    "audit-log-format": "json",
    "audit-log-mode": "batch",
    "audit-log-version": "audit.k8s.io/v1",
    "audit-webhook-mode": "batch",
    "audit-webhook-version": "audit.k8s.io/v1",
    "disable-admission-plugins": "ServiceAccount",
    "history-size": "64Mi",
    "tls-cipher-suites": "TLS_AES_128_GCM_SHA256",
    "tls-min-version": "VersionTLS12",
}
SEEN = {
    "allow-privileged": "true",
    "authorization-mode": "Node,RBAC",
    "feature-gates": "Nonsense=true",
    "runtime-config": "api/all=true",
    "service-cluster-ip-range": "10.0.0.0/24,fd00::/108",
}
"""Values of public suites that are unlike ours."""


def _ours() -> set[str]:
    return set(parser_of("serve")._option_string_actions)


def _value(name: str) -> str:
    numeric = ("size", "qps", "burst", "max", "inflight", "age", "backup")
    if name in VALUES:
        return VALUES[name]
    if APISERVER[name]:
        return "true"
    if name.endswith(("ttl", "wait", "backoff", "expiration", "timeout")):
        return "10s"
    return "5" if any(part in name for part in numeric) else "x"


@pytest.mark.parametrize("name", sorted(set(APISERVER) - READ_BEFORE - {"help", "h", "version"}))
def test_a_flag_reaches_the_server_or_is_reported(name: str) -> None:
    value, word = ANOTHER_WAY.get(name, (_value(name), f"--{name}={_value(name)}"))

    words, ignored = translate(
        parse_flags([f"--{name}={value}"], APISERVER), "memory:", TLS, _ours()
    )

    parser_of("serve").parse_args(words)
    assert ignored == [name] if word not in words and word else not ignored


def test_exactly_the_flags_without_an_equivalent_are_reported() -> None:
    given = [
        f"--{name}={_value(name)}" for name in APISERVER if name not in ("help", "h", "version")
    ]

    _, ignored = translate(parse_flags(given, APISERVER), "memory:", TLS, _ours())

    said_another_way = READ_BEFORE | set(ANOTHER_WAY) - {"insecure-port"}
    assert set(ignored) == {
        name
        for name in APISERVER
        if f"--{name}" not in _ours() and name not in said_another_way | {"help", "h", "version"}
    }


@pytest.mark.parametrize(("name", "value"), SEEN.items())
def test_values_of_public_suites_are_taken(name: str, value: str) -> None:
    flags = parse_flags([f"--{name}", value], APISERVER) if not APISERVER[name] else {name: [value]}

    words, ignored = translate(flags, "memory:", TLS, _ours())

    parser_of("serve").parse_args(words)
    assert ("service-cluster-ip-range=fd00::/108" in ignored) == (
        name == "service-cluster-ip-range"
    )


def test_no_flag_of_the_reference_is_unknown() -> None:
    demand_shared(REFERENCE)
    text = REFERENCE.read_text()
    table = text[text.index("### 8.7") : text.index("\n---", text.index("### 8.7"))]
    [row] = [line for line in table.splitlines() if line.startswith("| secure-port")]
    rest = re.findall(r"to be accepted: `([^`]*)`", table)
    cells = re.sub(r"\([^()]*\)", "", row).strip("| ").replace("|", ",").split(",")
    names = {name for cell in cells for name in _spelled(cell.strip())}
    names |= {name for word in rest[0].split() for name in _spelled(word)}

    assert len(names) > 120
    assert sorted(names - set(APISERVER)) == []


def _spelled(cell: str) -> list[str]:
    """``a-key-file/-other`` and ``a-{b,c}-d``, in full; what has a star stands for known ones."""
    words = cell.split(" and ")
    found: list[str] = []
    for word in words:
        head, *more = word.strip().partition("=")[0].split("/-")
        if "*" in word or not re.fullmatch(r"[a-z0-9-]+", head):
            continue
        found.append(head)
        stem = head
        for each in more:
            while "-" in stem and f"{stem}-{each}" not in APISERVER:
                stem = stem.rpartition("-")[0]
            found.append(f"{stem}-{each}")
            stem = head
    return found


def test_defaults_of_kube_apiserver_are_on() -> None:
    words, _ = translate({}, "memory:", TLS, _ours())

    assert "--authorization-mode=AlwaysAllow" in words
    assert "--enable-admission-plugins=ServiceAccount" in words
    assert "--controllers=" in words


def test_a_suites_history_is_small_in_memory_and_etcds_own_elsewhere() -> None:
    in_memory, _ = translate({}, "memory:", TLS, _ours())
    in_etcd, _ = translate({}, "etcd://127.0.0.1:2379/registry", TLS, _ours())

    assert "--history-size=64Mi" in in_memory
    assert not [word for word in in_etcd if word.startswith("--history-size")]


def test_defaults_give_way_to_what_a_suite_says() -> None:
    given = parse_flags(
        ["--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"], APISERVER
    )

    words, _ = translate(given, "memory:", TLS, _ours())

    assert "--authorization-mode=AlwaysAllow" not in words
    assert "--enable-admission-plugins=ServiceAccount" not in words
