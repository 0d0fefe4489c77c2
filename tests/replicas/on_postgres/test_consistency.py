"""What one replica has acknowledged, the other one knows, with a database between them."""

from __future__ import annotations

from tests.replicas.test_consistency import *  # noqa: F403
