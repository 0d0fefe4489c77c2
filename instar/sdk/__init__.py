"""Public API for authors of CRDs: write conversions and admission, serve them, check them.

The implementation is in ``instar.tools.sdk``, which is private.
"""

from instar.tools.sdk.admission import Admission, Refused
from instar.tools.sdk.converter import BuiltConverter, Converter
from instar.tools.sdk.errors import ConversionError, ConverterDefinitionError, IncompleteConverter
from instar.tools.sdk.loading import load
from instar.tools.sdk.rules import (
    ConversionRule,
    constant,
    enum,
    join,
    keep,
    list_of_one,
    list_to_map,
    lossy,
    map_to_list,
    move,
    scale,
    split,
    wrap,
)

__all__ = [
    "Admission",
    "BuiltConverter",
    "ConversionError",
    "ConversionRule",
    "Converter",
    "ConverterDefinitionError",
    "IncompleteConverter",
    "Refused",
    "constant",
    "enum",
    "join",
    "keep",
    "list_of_one",
    "list_to_map",
    "load",
    "lossy",
    "map_to_list",
    "move",
    "scale",
    "split",
    "wrap",
]
