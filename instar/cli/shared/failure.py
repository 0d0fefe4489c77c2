"""A command's failure that a person should read in one line."""

from __future__ import annotations


class CliFailure(Exception):
    """``code`` 1: it did not work; 2: it was called wrongly."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code
