"""Exec credential plugins of a kubeconfig (``exec``): EKS, GKE, AKS, OIDC helpers.

Used by ``kubeconfig.py`` and ``client.py``. The module runs the program
(``client.authentication.k8s.io``) and caches the credential until it expires.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from instar.base.fast_dataclass import dataclass

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
_RENEWAL_MARGIN = timedelta(seconds=10)
"""A credential this close to its expiry is renewed."""
_SECONDS = 60.0


class ExecError(Exception):
    """The plugin failed; ``str()`` names the program and the cause."""


@dataclass(frozen=True, slots=True)
class Credential:
    """Token or certificate that an exec plugin printed."""

    token: str | None = None
    cert: bytes | None = None
    key: bytes | None = None
    expires: datetime | None = None

    def good(self, now: datetime) -> bool:
        return self.expires is None or now < self.expires - _RENEWAL_MARGIN


@dataclass(slots=True)
class ExecPlugin:
    """The ``exec`` section of a kubeconfig."""

    command: str
    version: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cluster: Mapping[str, Any] | None = None
    """Cluster data passed to the program, if the kubeconfig requests it."""
    interactive: str = "IfAvailable"
    hint: str = ""
    """How to install the program."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _known: Credential | None = None
    _alone: threading.Lock = field(default_factory=threading.Lock)

    def credential(self) -> Credential:
        """Return the cached credential while valid; else run the program, which may take long."""
        with self._alone:
            if self._known is None or not self._known.good(self.clock()):
                self._known = self._run()
            return self._known

    def forget(self) -> None:
        """Drop the cached credential, because the server rejected it."""
        self._known = None

    def _run(self) -> Credential:
        terminal = self.interactive != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if self.interactive == "Always" and not terminal:
            raise ExecError(f"{self.command} asks for input, and there is no terminal")
        info = {"interactive": terminal, **({"cluster": self.cluster} if self.cluster else {})}
        asked = {"apiVersion": self.version, "kind": "ExecCredential", "spec": info}
        try:
            done = subprocess.run(
                [self.command, *self.args],
                env={**os.environ, **self.env, "KUBERNETES_EXEC_INFO": json.dumps(asked)},
                stdin=None if terminal else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if terminal else subprocess.PIPE,
                timeout=_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            hint = f"\n{self.hint}" if self.hint else ""
            raise ExecError(f"{self.command}: there is no such program{hint}") from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ExecError(f"{self.command}: {error}") from None
        if done.returncode:
            told = (done.stderr or b"").decode(errors="replace").strip().splitlines()
            last = f": {told[-1]}" if told else ""
            raise ExecError(f"{self.command} failed with exit code {done.returncode}{last}")
        return self._read(done.stdout)

    def _read(self, data: bytes) -> Credential:
        try:
            document = json.loads(data)
            status = document["status"]
            kind, version = document["kind"], document["apiVersion"]
        except (ValueError, KeyError, TypeError):
            # The output may be a secret, so it is not repeated.
            raise ExecError(f"{self.command} printed no ExecCredential") from None
        if kind != "ExecCredential" or version != self.version:
            raise ExecError(f"{self.command} answered {kind} {version}, not {self.version}")
        cert, key = status.get("clientCertificateData"), status.get("clientKeyData")
        token = status.get("token") or None
        if bool(cert) != bool(key) or not (token or cert):
            raise ExecError(f"{self.command} gave neither a token nor a certificate with its key")
        return Credential(
            token=token,
            cert=cert.encode() if cert else None,
            key=key.encode() if key else None,
            expires=self._expiry(status.get("expirationTimestamp")),
        )

    def _expiry(self, text: Any) -> datetime | None:
        if not text:
            return None
        try:
            return datetime.fromisoformat(str(text))
        except ValueError:
            raise ExecError(f"{self.command}: {text!r} is no time of expiry") from None


def read_exec(body: Mapping[str, Any], beside: Path, cluster: Mapping[str, Any]) -> ExecPlugin:
    """Parse the ``exec`` part of a kubeconfig's user. ``beside`` is the folder of the file."""
    command, version = str(body.get("command") or ""), str(body.get("apiVersion") or "")
    if not command:
        raise ExecError("exec without a command")
    if version not in VERSIONS:
        known = " and ".join(VERSIONS)
        raise ExecError(f"exec {command}: apiVersion {version!r} is not known; {known} are")
    if "/" in command:
        command = str(beside / Path(command).expanduser())
    return ExecPlugin(
        command=command,
        version=version,
        args=tuple(str(each) for each in body.get("args") or ()),
        env={str(each["name"]): str(each["value"]) for each in body.get("env") or ()},
        cluster=_cluster_document(cluster) if body.get("provideClusterInfo") else None,
        interactive=str(body.get("interactiveMode") or "IfAvailable"),
        hint=str(body.get("installHint") or ""),
    )


def _cluster_document(cluster: Mapping[str, Any]) -> dict[str, Any]:
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
    told = {name: cluster[name] for name in names if cluster.get(name)}
    if cluster.get("certificate-authority-data"):
        told["certificate-authority-data"] = cluster["certificate-authority-data"]
    for extension in cluster.get("extensions") or ():
        if extension.get("name") == f"{GROUP}/exec":
            told["config"] = extension.get("extension")
    return told
