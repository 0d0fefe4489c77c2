"""Real kubectls: every one on PATH, and those named in INSTAR_KUBECTLS (paths joined by colons)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support.server import LiveServer

MISSING = "no kubectl on PATH and none in INSTAR_KUBECTLS: nothing was proved with a real kubectl"
PATIENCE = 60


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


def kubectls() -> list[str]:
    """Each binary once, however many ways lead to it."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    named = os.environ.get("INSTAR_KUBECTLS", "").split(":")
    candidates = [*(os.path.join(folder, "kubectl") for folder in folders if folder), *named]
    found: dict[str, str] = {}
    for path in candidates:
        if path and os.access(path, os.X_OK):
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def client_version(path: str) -> tuple[int, int]:
    shown = subprocess.run(
        [path, "version", "--client"], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    match = re.search(r"v(\d+)\.(\d+)\.", shown)
    assert match is not None, shown
    return int(match[1]), int(match[2])


@dataclass(frozen=True)
class Kubectl:
    """One kubectl bound to one server, with a discovery cache of its own."""

    path: str
    version: tuple[int, int]
    server: LiveServer
    home: Path
    namespace: str = "default"
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, given: Any = None, env: dict[str, str] | None = None) -> Ran:
        """``given`` is what ``-f -`` reads: text, or one object or several to write as YAML."""
        done = subprocess.run(
            self.command(*arguments),
            input=as_text(given),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self.env(env),
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def __call__(self, *arguments: str, given: Any = None) -> str:
        """The output of a command that must succeed."""
        ran = self.run(*arguments, given=given)
        assert ran.code == 0, f"kubectl {' '.join(arguments)}: {ran.text}"
        return ran.out

    def fails(self, *arguments: str, given: Any = None) -> str:
        """What a command that must fail complains about."""
        ran = self.run(*arguments, given=given)
        assert ran.code != 0, f"kubectl {' '.join(arguments)} succeeded: {ran.text}"
        return ran.text

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def command(self, *arguments: str) -> list[str]:
        options = [f"--kubeconfig={self.server.kubeconfig}", f"--cache-dir={self.home / 'cache'}"]
        return [self.path, *options, f"--namespace={self.namespace}", *arguments]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command that goes on, such as a watch; its output is read line by line."""
        return subprocess.Popen(
            self.command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.env(None),
        )

    def env(self, more: dict[str, str] | None) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.home), **(more or {})}


def as_text(given: Any) -> str | None:
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, dict):
        given = [given]
    return yaml.safe_dump_all(given)
