"""``--converter`` of a server: loading what is named, and whether the server's CRDs agree.

A converter that nobody asks loses data silently, so a wrong name or a CRD that converts nothing
ends the start instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from instar.api.crd import Crd
from instar.cli.failure import CliFailure
from instar.conversion.inprocess import ConvertFunction


def load_converters(specs: Iterable[str]) -> dict[str, ConvertFunction]:
    """``CRD_NAME=package.module:converter``; the SDK is imported only when one is asked for."""
    specs = list(specs)
    if not specs:
        return {}
    # Only here: few servers convert in their own process.
    from instar.sdk import ConverterDefinitionError, load

    found: dict[str, ConvertFunction] = {}
    for spec in specs:
        crd, _, where = spec.partition("=")
        if not crd or not where:
            raise CliFailure(
                f"--converter {spec}: expected CRD_NAME=package.module:converter", code=2
            )
        try:
            converter = load(where)
        except ConverterDefinitionError as error:
            raise CliFailure(f"--converter {crd}: {error}", code=2) from error
        if crd.partition(".")[2] != converter.group:
            raise CliFailure(
                f"--converter {crd}: {where} converts {converter.kind}.{converter.group}, whose "
                f"CRD is called PLURAL.{converter.group}",
                code=2,
            )
        found[crd] = converter.convert_owned
    return found


def unused(names: Iterable[str], crds: Iterable[Crd]) -> str | None:
    """Why a converter would never be asked by these CRDs; one whose CRD is still to come may."""
    known = {crd.name: crd for crd in crds}
    for name in names:
        crd = known.get(name)
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
