"""Loads a converter or admission handlers from ``package.module:name`` or a file.

The ``check``, ``convert``, ``review``, ``rehearse``, ``webhook`` and ``serve`` commands call it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from instar.base.importing import NotImportable, import_attribute, is_import_spec
from instar.base.text_files import read_text
from instar.kube.api.encoding.manifests import SUFFIXES, UnreadableManifest, only_document
from instar.tools.sdk.admission import Admission
from instar.tools.sdk.converter import BuiltConverter, Converter
from instar.tools.sdk.errors import ConverterDefinitionError
from instar.tools.sdk.yaml_rules import converter_from


def load(spec: str) -> BuiltConverter:
    """Load ``package.module:converter``, or a ``conversion.yaml`` by its path."""
    found = load_any(spec)
    if isinstance(found, Admission):
        raise ConverterDefinitionError(f"{spec} is an Admission, not an instar.sdk.Converter")
    return found


def importable_name(thing: object) -> str:
    """Return ``package.module:name`` by which another process imports the object; empty if none."""
    for module_name, module in list(sys.modules.items()):
        if module_name == "__main__" or not isinstance(module, ModuleType):
            continue
        for name, value in list(vars(module).items()):
            if value is thing:
                return f"{module_name}:{name}"
    return ""


def load_admission(spec: str) -> Admission:
    """Load ``package.module:admission``."""
    found = load_any(spec)
    if not isinstance(found, Admission):
        raise ConverterDefinitionError(f"{spec} is a converter, not an instar.sdk.Admission")
    return found


def load_any(spec: str) -> BuiltConverter | Admission:
    """Load a converter or an admission, because a webhook may serve both."""
    if spec.endswith(SUFFIXES):
        return _from_file(Path(spec)).build()
    if not is_import_spec(spec):
        raise ConverterDefinitionError(
            f"{spec!r} is neither package.module:converter nor a .yaml file"
        )
    return _from_module(spec)


def _from_file(path: Path) -> Converter:
    try:
        # Typed: an ``enum`` maps values, and true is another one than "true".
        rules = only_document(read_text(path), str(path), typed_keys=True)
    except OSError as error:
        raise ConverterDefinitionError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConverterDefinitionError(f"{path}: not a text file") from None
    except UnreadableManifest as error:
        raise ConverterDefinitionError(str(error)) from None
    return converter_from(rules, str(path))


def _from_module(spec: str) -> BuiltConverter | Admission:
    try:
        found = import_attribute(spec)
    except NotImportable as error:
        raise ConverterDefinitionError(str(error)) from error
    if isinstance(found, Converter):
        return found.build()
    if isinstance(found, BuiltConverter | Admission):
        return found
    raise ConverterDefinitionError(
        f"{spec} is a {type(found).__name__}, not an instar.sdk.Converter or Admission"
    )
