"""Reader of ``--admission-control-config-file``, an ``AdmissionConfiguration``.

``optional_parts.py`` loads it if the flag is set, or if EventRateLimit or ImagePolicyWebhook is
enabled, which cannot run without a configuration. The plugins in ``registry/admission/plugins``
interpret their parts of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from instar.base.config_shapes import ShapeMismatch, unknown_fields
from instar.server.files.config_files import ConfigurationFile, read_configuration
from instar.server.registry.admission.plugin_configurations import PluginConfigurations
from instar.server.registry.admission.plugins.event_rate_limit import (
    NAME,
    BadLimits,
    EventLimit,
    read_limits,
)
from instar.server.registry.admission.plugins.image_policy import (
    IMAGE_POLICY,
    BadImagePolicy,
    ImagePolicy,
    read_image_policy,
)
from instar.server.registry.admission.plugins.pod_placement import (
    NODE_SELECTOR,
    BadNodeSelector,
    read_node_selectors,
)
from instar.server.registry.admission.plugins.pod_security import NAME as POD_SECURITY
from instar.server.registry.admission.plugins.pod_security import (
    BadPodSecurity,
    PodSecurityConfiguration,
    read_pod_security,
)
from instar.server.registry.admission.plugins.pod_tolerations import (
    TOLERATION_RESTRICTION,
    BadTolerations,
    TolerationRules,
    read_tolerations,
)

T = TypeVar("T")

_API, _KIND = "apiserver.config.k8s.io/v1", "AdmissionConfiguration"
_SHAPE: Any = {
    "apiVersion": str,
    "kind": str,
    "plugins": [{"name": str, "path": str, "configuration": None}],
}


def read_plugin_configurations(path: Path | None, on: frozenset[str]) -> PluginConfigurations:
    """Read the configurations of the enabled plugins. Raises ``ValueError`` with one line for the
    operator."""
    limits = event_limits(path) if NAME in on else ()
    images = image_policy(path) if IMAGE_POLICY in on else None
    if path is None:
        return PluginConfigurations(event_limits=limits, image_policy=images)
    file = read_configuration(path, "admission configuration")

    def of(name: str, read: Callable[[Any], T], otherwise: T) -> T:
        document = _of_plugin(file, name) if name in on else None
        if document is None:
            return otherwise
        try:
            return read(document)
        except (BadPodSecurity, BadNodeSelector, BadTolerations) as error:
            raise file.refused(f"{name}: {error}") from error

    return PluginConfigurations(
        event_limits=limits,
        image_policy=images,
        pod_security=of(POD_SECURITY, read_pod_security, PodSecurityConfiguration()),
        node_selectors=of(NODE_SELECTOR, read_node_selectors, {}),
        tolerations=of(TOLERATION_RESTRICTION, read_tolerations, TolerationRules()),
    )


def event_limits(path: Path | None) -> tuple[EventLimit, ...]:
    """The limits of EventRateLimit. Raises ``ValueError`` with one line for the operator."""
    if path is None:
        raise ValueError(f"no {NAME} config specified: --admission-control-config-file names it")
    file = read_configuration(path, "admission configuration")
    try:
        return read_limits(_of_plugin(file, NAME))
    except BadLimits as error:
        raise file.refused(f"{NAME}: {error}") from error


def image_policy(path: Path | None) -> ImagePolicy:
    """The configuration of ImagePolicyWebhook. Raises ``ValueError`` with one line for the
    operator."""
    if path is None:
        raise ValueError(
            f"no {IMAGE_POLICY} config specified: --admission-control-config-file names it"
        )
    file = read_configuration(path, "admission configuration")
    try:
        return read_image_policy(_of_plugin(file, IMAGE_POLICY))
    except BadImagePolicy as error:
        raise file.refused(f"{IMAGE_POLICY}: {error}") from error


def _of_plugin(file: ConfigurationFile, name: str) -> Any:
    document = file.document
    try:
        unknown = unknown_fields(document, _SHAPE)
    except ShapeMismatch as error:
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
