"""Real CRDs beside the checkout: every release of every project that was collected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from instar.base.json_values import Object
from instar.kube.api.encoding.manifests import documents

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus of CRDs at {CORPUS}")


def corpus() -> Iterator[tuple[Path, Object]]:
    """Each document with its file; skips the test where there is no corpus."""
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus of real CRDs at {CORPUS}")
    for path in sorted(CORPUS.glob("*/*/*.yaml")):
        for document in documents(path.read_text(), str(path)):
            yield path, document.value
