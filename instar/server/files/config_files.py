"""Reader of configuration files: one YAML or JSON document; errors are one line for the operator.

Audit, encryption, authentication and admission configurations are read with it. It is imported only
if such a file is given, because YAML is slow to import.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from instar.kube.api.encoding.go_yaml_scalars import YamlError
from instar.kube.api.encoding.json_text import TooDeep
from instar.kube.api.encoding.yaml_text import read_yaml


class ConfigurationFile(NamedTuple):
    """A file that a flag names, and what it is for."""

    what: str
    path: Path
    data: bytes
    document: Any

    def refused(self, why: str) -> ValueError:
        return ValueError(f'{self.what} file "{self.path}": {why}')


def read_configuration(path: Path, what: str) -> ConfigurationFile:
    """Raises ``ValueError`` with one line for the operator. The file may contain secrets, so the
    message of a parse error does not quote it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f'error opening {what} file "{path}": {error.strerror}') from error
    if not data.strip():
        raise ValueError(f'{what} file "{path}" is empty')
    try:
        document, repeated = read_yaml(data)
    except (YamlError, TooDeep, UnicodeDecodeError) as error:
        raise ValueError(f'error decoding {what} file "{path}": it is no YAML') from error
    if repeated:
        raise ValueError(f'{what} file "{path}": strict decoding error: {repeated[0]}')
    return ConfigurationFile(what, path, data, document)
