"""Reads text files that a user named: configurations, tokens, certificates.

Called by the server at its start, by the CLI commands and by the tools. Files are read as UTF-8,
whatever the locale is. Other bytes raise an ``OSError`` with the file's name, so that callers
report a file that is not text like one that is missing.
"""

from __future__ import annotations

import errno
from pathlib import Path


def read_text(path: str | Path) -> str:
    """Return the text of a file. Raises ``OSError``."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "not a text file (UTF-8)", str(path)) from None
