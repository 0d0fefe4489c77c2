"""Conversion flags of ``instar serve``, and the functions of its in-process converters.

Called by ``cli/commands/serve.py``, and by ``instar test`` for the functions. A converter that is
never called would lose data silently, so a wrong name, or a CRD without webhook conversion, is an
error at start.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from instar.cli.shared.converters import add_converter_argument, given_converters
from instar.kube.api.crd import Crd
from instar.kube.api.names import GroupKind
from instar.wire.conversion.in_process import ConvertFunction


def add_conversion_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``instar serve`` for converters and webhook calls."""
    group = parser.add_argument_group("conversion, and webhooks of any sort")
    add_converter_argument(
        group, "The server then does not call the CRD's webhook; the CRD's strategy must be Webhook"
    )
    add = group.add_argument
    add(
        "--service",
        metavar="NS/NAME[:PORT]=HOST:PORT",
        action="append",
        default=[],
        help="where the Service of a webhook is reached from here; may be repeated",
    )
    add(
        "--webhook-client-cert",
        metavar="PEM",
        type=Path,
        help="certificate shown to webhooks that ask for one",
    )
    add("--webhook-client-key", metavar="PEM", type=Path, help="its key")
    add(
        "--webhook-timeout",
        metavar="SECONDS",
        type=float,
        default=30.0,
        help="how long a conversion webhook may take for one call",
    )
    add(
        "--webhook-timeout-for",
        metavar="CRD=SECONDS",
        action="append",
        default=[],
        help="the same for one CRD; may be repeated",
    )
    add(
        "--no-conversion-cache",
        action="store_true",
        help="ask the webhook at every read, also for what it converted before",
    )
    add(
        "--convert-ahead",
        choices=["on", "off"],
        default="on",
        help="convert written objects ahead of reads, to the versions that clients read",
    )


def load_converters(texts: Iterable[str]) -> dict[str, ConvertFunction]:
    """Load the converters of ``--converter`` as functions, by CRD name or ``Kind.group``."""
    return {each.key: each.built.convert_owned for each in given_converters(texts)}


def why_unused(names: Iterable[str], crds: Iterable[Crd]) -> str | None:
    """Return why a converter would never be called by these CRDs; a CRD may be created later."""
    known = {crd.name: crd for crd in crds}
    by_kind = {str(GroupKind(crd.group, crd.names.kind)): crd for crd in known.values()}
    for name in names:
        crd = known.get(name) or by_kind.get(name)
        if crd is None:
            plural, _, group = name.partition(".")
            others = [other.names.plural for other in known.values() if other.group == group]
            meant = get_close_matches(plural, others, n=1, cutoff=0.8)
            if meant:
                return f"--converter {name}: there is no such CRD; {meant[0]}.{group} is there"
        elif crd.conversion.strategy != "Webhook":
            return (
                f"--converter {name}: the CRD's conversion strategy is {crd.conversion.strategy}, "
                "so the converter would never be asked; set spec.conversion.strategy: Webhook"
            )
    return None
