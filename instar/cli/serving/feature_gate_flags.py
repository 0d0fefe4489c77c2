"""Flag ``--feature-gates`` of ``instar serve``, with kube-apiserver's syntax.

``cli/commands/serve.py`` adds and reads it. A gate that is set to another value than its default
either takes effect or is logged as having no effect. Names and defaults are in
``tools/envtest/feature_gates.py``.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping

from instar.cli.shared.failure import CliFailure
from instar.tools.envtest.feature_gates import BadFeatureGate, changed_gates

log = logging.getLogger(__name__)

WATCH_LIST = "WatchList"
CBOR = "CBORServingAndStorage"
_PLUGINS = {
    "MutatingAdmissionPolicy": "MutatingAdmissionPolicy",
    "PodTopologyLabelsAdmission": "PodTopologyLabels",
}
"""Gates that are on, and the admission plugin that each of them turns off."""
HONOURED = frozenset({WATCH_LIST, CBOR, *_PLUGINS})
"""Gates that take effect in instar."""


def add_feature_gate_arguments(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--feature-gates",
        metavar="NAME=BOOL",
        action="append",
        default=[],
        help="kube-apiserver's feature gates. Honoured: " + ", ".join(sorted(HONOURED)) + "; "
        "others that differ from their default are named at the start, without effect",
    )


def gates_of(args: argparse.Namespace) -> Mapping[str, bool]:
    """Return the gates that differ from their defaults."""
    try:
        changed = changed_gates(args.feature_gates)
    except BadFeatureGate as error:
        raise CliFailure(f"--feature-gates: {error}", code=2) from error
    for name, value in sorted(changed.items()):
        if name not in HONOURED:
            log.warning("feature gate %s=%s has no effect in this server", name, str(value).lower())
    return changed


def plugins_off(gates: Mapping[str, bool]) -> frozenset[str]:
    """Return the admission plugins that gates turn off."""
    return frozenset(plugin for gate, plugin in _PLUGINS.items() if not gates.get(gate, True))
