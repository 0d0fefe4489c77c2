"""From ``package.module:name`` on a command line to what it names in Python.

The one way there, for converters, admission and models. Knows nothing of what is found.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import Any


class NotImportable(Exception):
    """One line: there is no such thing, or its module fails, and where."""


def imported(spec: str) -> Any:
    """The named thing; ``NotImportable`` where there is none."""
    module_name, _, name = spec.partition(":")
    module = _module(module_name)
    found = getattr(module, name, None)
    if found is None:
        raise NotImportable(f"{module_name}:{name} is nothing")
    return found


def names_a_thing(spec: str) -> bool:
    module, colon, name = spec.partition(":")
    return bool(module and colon and name)


def _module(name: str) -> Any:
    # Like ``python -m``: a module beside the caller is found without installing it.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            raise NotImportable(f"there is no module {name!r}") from None
        raise NotImportable(_broken(name, error)) from error
    except Exception as error:
        raise NotImportable(_broken(name, error)) from error


def _broken(module_name: str, error: Exception) -> str:
    """Where an author's module fails while it is imported: its last line, not ours."""
    if isinstance(error, SyntaxError):
        return f"{module_name} cannot be imported: {error.filename}:{error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    return f"{module_name} cannot be imported: {place}{type(error).__name__}: {error}"
