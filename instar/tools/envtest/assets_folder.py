"""A folder that KUBEBUILDER_ASSETS can name: three programs that are found by their names."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

_PROGRAMS = {
    "kube-apiserver": "instar.cli.serving.kube_apiserver",
    "etcd": "instar.tools.envtest.etcd_stub",
}


def write_folder(folder: Path, kubectl: str | None) -> None:
    """Existing files of these names are replaced. ``kubectl``: one that was found, if any."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, module in _PROGRAMS.items():
        # ``exec``: the signal that ends it reaches the server itself. Isolated: what lies in the
        # folder of a suite must not be imported.
        run = f"exec {shlex.quote(sys.executable)} -I -m {module}"
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
    path.write_text(text)
    path.chmod(0o755)
