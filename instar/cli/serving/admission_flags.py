"""Admission flags of ``instar serve``: kube-apiserver's plugin flags, and ``--admission-module``
for handlers in the server's process.

Called by ``cli/commands/serve.py``.
"""

from __future__ import annotations

import argparse
import logging

from instar.cli.shared.failure import CliFailure
from instar.server.registry.admission.plugin_names import CRD_PROTECTION, IDLE, BadPlugins, chosen
from instar.server.registry.admission.webhooks.in_process import LocalConfiguration

log = logging.getLogger(__name__)


def add_arguments(parser: argparse._ActionsContainer) -> None:
    add = parser.add_argument
    add(
        "--enable-admission-plugins",
        metavar="NAMES",
        action="append",
        default=[],
        help="besides those that are on, with kube-apiserver's names",
    )
    add(
        "--disable-admission-plugins",
        metavar="NAMES",
        action="append",
        default=[],
        help="of those that are on",
    )
    add("--admission", metavar="NAMES", action="append", default=[], help="only these plugins")
    add(
        "--protect-crds",
        action="store_true",
        help="refuse to delete a CRD that has objects, unless it is annotated with "
        "instar.dev/allow-deletion=true",
    )
    add(
        "--admission-module",
        metavar="MODULE:NAME",
        action="append",
        default=[],
        help="run this instar.sdk.Admission in the server, without a webhook",
    )


def plugins(args: argparse.Namespace) -> frozenset[str]:
    enabled = _names(args.enable_admission_plugins) + [CRD_PROTECTION] * args.protect_crds
    only = _names(args.admission)
    try:
        found = chosen(enabled, _names(args.disable_admission_plugins), only)
    except BadPlugins as error:
        raise CliFailure(str(error), code=2) from error
    for name in sorted({*enabled, *only} & IDLE):
        log.warning("admission plugin %s is enabled but has no effect in this server", name)
    return found


def _names(given: list[str]) -> list[str]:
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def modules(specs: list[str]) -> tuple[LocalConfiguration, ...]:
    """Load ``package.module:admission`` specifications."""
    if not specs:
        return ()
    # Imported here, because few servers run admission in their own process.
    from instar.tools.sdk.admission_reviews import review_in_process
    from instar.tools.sdk.errors import ConverterDefinitionError
    from instar.tools.sdk.loading import load_admission

    found: list[LocalConfiguration] = []
    for spec in specs:
        try:
            admission = load_admission(spec)
        except ConverterDefinitionError as error:
            raise CliFailure(f"--admission-module {spec}: {error}") from error
        review = review_in_process(admission)
        documents = admission.configurations(lambda path: {})
        found += [LocalConfiguration(document, review) for document in documents]
    return tuple(found)
