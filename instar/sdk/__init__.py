"""For authors of CRDs: write conversions and admission, serve them, check them."""

from instar.sdk.admission import Admission, Refused
from instar.sdk.converter import BuiltConverter, Converter
from instar.sdk.errors import ConversionError, ConverterDefinitionError, IncompleteConverter
from instar.sdk.loading import load
from instar.sdk.rules import (
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
