"""From what a command line says (``package.module:name`` or a file) to a converter or admission."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path

from instar.api.manifests import SUFFIXES, Unreadable, only_document
from instar.sdk.admission import Admission
from instar.sdk.converter import BuiltConverter, Converter
from instar.sdk.errors import ConverterDefinitionError
from instar.sdk.yamlrules import converter_from


def load(spec: str) -> BuiltConverter:
    """``package.module:converter``, or the path of a ``conversion.yaml``."""
    found = load_any(spec)
    if isinstance(found, Admission):
        raise ConverterDefinitionError(f"{spec} is an Admission, not an instar.sdk.Converter")
    return found


def load_admission(spec: str) -> Admission:
    """``package.module:admission``."""
    found = load_any(spec)
    if not isinstance(found, Admission):
        raise ConverterDefinitionError(f"{spec} is a converter, not an instar.sdk.Admission")
    return found


def load_any(spec: str) -> BuiltConverter | Admission:
    """Either, as a webhook may serve both."""
    if spec.endswith(SUFFIXES):
        return _from_file(Path(spec)).build()
    module_name, colon, name = spec.partition(":")
    if not colon or not module_name or not name:
        raise ConverterDefinitionError(
            f"{spec!r} is neither package.module:converter nor a .yaml file"
        )
    return _from_module(module_name, name)


def _from_file(path: Path) -> Converter:
    try:
        # Typed: an ``enum`` maps values, and true is another one than "true".
        rules = only_document(path.read_text(), str(path), typed_keys=True)
    except OSError as error:
        raise ConverterDefinitionError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConverterDefinitionError(f"{path}: not a text file") from None
    except Unreadable as error:
        raise ConverterDefinitionError(str(error)) from None
    return converter_from(rules, str(path))


def _from_module(module_name: str, name: str) -> BuiltConverter | Admission:
    # Like ``python -m``: a module beside the caller is found without installing it.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.startswith(error.name):
            raise ConverterDefinitionError(f"there is no module {module_name!r}") from None
        raise ConverterDefinitionError(_broken(module_name, error)) from error
    except ConverterDefinitionError as error:
        raise ConverterDefinitionError(f"{module_name}: {error}") from error
    except Exception as error:
        raise ConverterDefinitionError(_broken(module_name, error)) from error
    found = getattr(module, name, None)
    if isinstance(found, Converter):
        return found.build()
    if isinstance(found, BuiltConverter | Admission):
        return found
    what = "nothing" if found is None else f"a {type(found).__name__}"
    raise ConverterDefinitionError(
        f"{module_name}:{name} is {what}, not an instar.sdk.Converter or Admission"
    )


def _broken(module_name: str, error: Exception) -> str:
    """Where an author's module fails while it is imported: its last line, not ours."""
    if isinstance(error, SyntaxError):
        return f"{module_name} cannot be imported: {error.filename}:{error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    return f"{module_name} cannot be imported: {place}{type(error).__name__}: {error}"
