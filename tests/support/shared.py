"""What lies beside the checkout in ``../shared`` (or in ``$INSTAR_SHARED``): recorded answers, real
CRDs, reference texts. They are never copied here, and a lone clone has ``tests/recordings`` alone.

Every test that reads them asks here what happens where they are missing: on a developer's machine
it is skipped, in CI it fails, because a green run would say nothing about parity. A pipeline that
has only the repository says so with ``INSTAR_SHARED=absent``; there ``tests/recordings`` guards it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("INSTAR_SHARED") or Path(__file__).resolve().parents[3] / "shared")


def demand_shared(path: Path) -> None:
    """Skips or fails the test that runs, unless the file or folder is there."""
    if path.exists():
        return
    if os.environ.get("CI") and os.environ.get("INSTAR_SHARED") != "absent":
        pytest.fail(f"{path} is missing, and CI must not pass without it", pytrace=False)
    pytest.skip(f"NOT COMPARED: {path} is missing")


def needs_shared(path: Path) -> pytest.MarkDecorator:
    """The same, for a test or a module; ``tests/conftest.py`` acts on the mark."""
    return pytest.mark.needs_shared(path)
