"""Errors of converters: in their definition, and while they convert.

Raised by ``converter.py`` and by the author's code; the commands and the webhook report them.
"""

from __future__ import annotations

from collections.abc import Sequence


class ConversionError(Exception):
    """This object cannot be converted. The API server's client gets this message."""


class ConverterDefinitionError(Exception):
    """The converter is defined wrongly; raised when it is built or loaded, never while serving."""


class IncompleteConverter(ConverterDefinitionError):
    """There is no conversion path between some versions; ``missing`` lists the (from, to) pairs."""

    def __init__(self, kind: str, missing: Sequence[tuple[str, str]]) -> None:
        listed = ", ".join(f"{source} → {target}" for source, target in missing)
        super().__init__(f"the converter for {kind} is incomplete; no way leads {listed}")
        self.missing = tuple(missing)
