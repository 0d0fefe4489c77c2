"""Configurations of admission plugins, as ``--admission-control-config-file`` names them.

``lifecycle/optional_parts.py`` fills it, ``lifecycle/admission_setup.py`` hands each plugin its
part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from instar.base.fast_dataclass import dataclass
from instar.server.registry.admission.plugins.event_rate_limit import EventLimit
from instar.server.registry.admission.plugins.image_policy import ImagePolicy
from instar.server.registry.admission.plugins.pod_security import PodSecurityConfiguration
from instar.server.registry.admission.plugins.pod_tolerations import TolerationRules


@dataclass(frozen=True, kw_only=True)
class PluginConfigurations:
    event_limits: Sequence[EventLimit] = ()
    image_policy: ImagePolicy | None = None
    """None where ImagePolicyWebhook is off."""
    pod_security: PodSecurityConfiguration = field(default_factory=PodSecurityConfiguration)
    node_selectors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By namespace, for PodNodeSelector."""
    tolerations: TolerationRules = TolerationRules()
