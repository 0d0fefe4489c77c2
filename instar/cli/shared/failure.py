"""``CliFailure``: a command's failure, printed by ``main.py`` as one line."""

from __future__ import annotations


class CliFailure(Exception):
    """``code`` 1: the work failed; 2: the call was wrong."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code
