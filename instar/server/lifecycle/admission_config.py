"""Reader of ``--admission-control-config-file``, an ``AdmissionConfiguration``.

``optional_parts.py`` loads it only where a plugin that needs a configuration is on, which is
EventRateLimit. The rules of the plugin are in ``registry/admission/plugins``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from instar.base.config_shapes import Misshapen, unknown_fields
from instar.server.files.config_files import ConfigurationFile, read_configuration
from instar.server.registry.admission.plugins.event_rate_limit import (
    NAME,
    BadLimits,
    EventLimit,
    read_limits,
)

_API, _KIND = "apiserver.config.k8s.io/v1", "AdmissionConfiguration"
_SHAPE: Any = {
    "apiVersion": str,
    "kind": str,
    "plugins": [{"name": str, "path": str, "configuration": None}],
}


def event_limits(path: Path | None) -> tuple[EventLimit, ...]:
    """The limits of EventRateLimit. Raises ``ValueError`` with one line for the operator."""
    if path is None:
        raise ValueError(f"no {NAME} config specified: --admission-control-config-file names it")
    file = read_configuration(path, "admission configuration")
    try:
        return read_limits(_of_plugin(file, NAME))
    except BadLimits as error:
        raise file.refused(f"{NAME}: {error}") from error


def _of_plugin(file: ConfigurationFile, name: str) -> Any:
    document = file.document
    try:
        unknown = unknown_fields(document, _SHAPE)
    except Misshapen as error:
        raise file.refused(str(error)) from error
    if unknown:
        raise file.refused(f'strict decoding error: unknown field "{unknown[0]}"')
    if (document.get("apiVersion"), document.get("kind")) != (_API, _KIND):
        raise file.refused(f"expected {_API}, {_KIND}")
    for plugin in document.get("plugins") or ():
        if plugin.get("name") == name:
            if plugin.get("configuration") is not None:
                return plugin["configuration"]
            where = file.path.parent / (plugin.get("path") or "")
            return read_configuration(where, f"{name} configuration").document
    return None
