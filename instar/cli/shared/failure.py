"""``CliFailure``: a command's failure, printed by ``main.py`` as one line."""

from __future__ import annotations

import errno

WRONG_PATH = (
    errno.ENOENT,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.EACCES,
    errno.EPERM,
    errno.EILSEQ,
    errno.ELOOP,
    errno.ENAMETOOLONG,
)
"""Errors of a path that was named wrongly, in contrast to a disk that is full or broken."""


class CliFailure(Exception):
    """``code`` 1: the work failed; 2: the call was wrong."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code
