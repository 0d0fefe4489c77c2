"""Writes the KUBEBUILDER_ASSETS folder with programs named kube-apiserver, etcd and kubectl.

Called by ``instar envtest``.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from instar.tools.envtest.flags import EXIT_WITH_PARENT

_PROGRAMS = {
    "kube-apiserver": "instar.cli.serving.kube_apiserver",
    "etcd": "instar.tools.envtest.etcd_stub",
}


def write_folder(folder: Path, kubectl: str | None, *, stay: bool = False) -> None:
    """Write the programs, replacing existing files. ``kubectl`` is the path of a real one, if any.
    Unless ``stay`` is set, the servers end with the process that starts them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, module in _PROGRAMS.items():
        # ``exec``, so that signals reach the server itself. Isolated (-I), so that files of the
        # suite are not imported.
        run = f"exec {shlex.quote(sys.executable)} -I -m {module}"
        if not stay:
            run += f" --{EXIT_WITH_PARENT}"
        _write(folder / name, f'#!/bin/sh\n{run} "$@"\n')
    place = folder / "kubectl"
    if kubectl is None:
        told = "instar: there was no kubectl when this folder was made"
        _write(place, f"#!/bin/sh\necho {shlex.quote(told)} >&2\nexit 127\n")
        return
    place.unlink(missing_ok=True)
    place.symlink_to(Path(kubectl).resolve())


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
