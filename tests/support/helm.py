"""A real helm, bound to one server. It comes with requirements/dev.txt."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest


class Reachable(Protocol):
    """A server with a kubeconfig file."""

    @property
    def kubeconfig(self) -> Path: ...


class Helm:
    def __init__(self, server: Reachable, home: Path) -> None:
        found = shutil.which("helm", path=str(Path(sys.executable).parent)) or shutil.which("helm")
        if found is None:
            pytest.skip("no helm: nothing was proved with a real one")
        self._command = [found, f"--kubeconfig={server.kubeconfig}"]
        self._env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments], env=self._env, capture_output=True, text=True, timeout=60
        )

    def __call__(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
