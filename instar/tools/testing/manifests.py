"""Reads the manifests that a test names: a file, a folder or an object.

Used by ``api_server.py``, ``plugin.py`` and ``webhooks.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from instar.kube.api.encoding.manifests import SUFFIXES, documents, members
from instar.tools.manifest_files import files_of, text_of

Source = str | Path | Mapping[str, Any]

INSTALL_IT = "Name its file in @pytest.mark.instar_crds(...) or --instar-crds, or install it first."
"""What to do about a kind that the server does not serve."""


def read_manifests(source: Source) -> Iterator[dict[str, Any]]:
    """Yield every object of a source, items of ``List``s one by one. A folder is read recursively,
    in the order of names."""
    if isinstance(source, Mapping):
        yield dict(source)
        return
    files = files_of(source)
    if not files:
        raise FileNotFoundError(f"{source}: no manifests (*{', *'.join(SUFFIXES)}) in this folder")
    for file in files:
        for document in documents(text_of(file), str(file)):
            for member in members(document):
                if isinstance(member.value, dict):
                    yield member.value
