"""Colours are for terminals whose owner did not say no."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ESCAPE = b"\x1b["
REVIEW = ("review", "old.yaml", "new.yaml")
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {{spec: {{type: object, properties: {{size: {{type: {type}}}}}}}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, kind in (("old", "integer"), ("new", "string")):
        (tmp_path / f"{name}.yaml").write_text(CRD.format(type=kind))
    return tmp_path


def _on_a_terminal(folder: Path, *words: str, **more: str) -> bytes:
    """All a person would see."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with subprocess.Popen(
        [sys.executable, "-m", "instar", *words],
        cwd=folder,
        env={**environment, "TERM": "xterm", **more},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
    os.close(ours)
    return seen


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""  # the other end is closed


def test_a_terminal_gets_colours_unless_no_color_is_set(folder: Path) -> None:
    assert ESCAPE in _on_a_terminal(folder, *REVIEW)
    assert ESCAPE in _on_a_terminal(folder, *REVIEW, NO_COLOR="")
    assert ESCAPE not in _on_a_terminal(folder, *REVIEW, NO_COLOR="1")
    assert ESCAPE not in _on_a_terminal(folder, *REVIEW, "--color", "never")


def test_a_pipe_gets_none_unless_asked_for(folder: Path) -> None:
    def piped(*more: str) -> bytes:
        words = [sys.executable, "-m", "instar", *REVIEW, *more]
        return subprocess.run(words, cwd=folder, capture_output=True, check=False).stdout

    assert ESCAPE not in piped()
    assert ESCAPE in piped("--color", "always")
