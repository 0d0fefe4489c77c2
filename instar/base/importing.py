"""Import of ``package.module:name``, as given on a command line.

Called by the SDK's loader (converters, admission handlers) and by ``instar crd`` (models). The
caller checks what kind of object it got.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import Any


class NotImportable(Exception):
    """The module or attribute does not exist, or importing it fails; str() is one line."""


def import_attribute(spec: str) -> Any:
    """Return the named attribute. Raises ``NotImportable``."""
    module_name, _, name = spec.partition(":")
    module = _module(module_name)
    found = getattr(module, name, None)
    if found is None:
        raise NotImportable(f"module {module_name!r} has no attribute {name!r}")
    return found


def is_import_spec(spec: str) -> bool:
    module, colon, name = spec.partition(":")
    return bool(module and colon and name)


def _module(name: str) -> Any:
    # As with ``python -m``, modules of the current directory need no installation.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            raise NotImportable(f"there is no module {name!r}") from None
        raise NotImportable(_import_error_text(name, error)) from error
    except Exception as error:
        raise NotImportable(_import_error_text(name, error)) from error


def _import_error_text(module_name: str, error: Exception) -> str:
    """Return a one-line message with the line of the user's module that failed on import."""
    if isinstance(error, SyntaxError):
        return f"{module_name} cannot be imported: {error.filename}:{error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    return f"{module_name} cannot be imported: {place}{type(error).__name__}: {error}"
