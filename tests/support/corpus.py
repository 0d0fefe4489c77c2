"""Real CRDs beside the checkout: every release of every project that was collected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from instar.base.json_values import Object
from instar.kube.api.encoding.manifests import documents
from tests.support.shared import SHARED, demand_shared, needs_shared

CORPUS = SHARED / "corpus"
needs_corpus = needs_shared(CORPUS)


def corpus() -> Iterator[tuple[Path, Object]]:
    """Each document with its file; ``demand_shared`` decides where there is no corpus."""
    demand_shared(CORPUS)
    for path in sorted(CORPUS.glob("*/*/*.yaml")):
        for document in documents(path.read_text(), str(path)):
            yield path, document.value
