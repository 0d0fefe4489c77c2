"""``--converter``: one grammar, help text and parser for every command that takes it.

A value is ``[CRD=]MODULE:NAME`` or ``[CRD=]conversion.yaml``. A converter declares the group and
the kind that it converts, so the CRD's name is optional everywhere; where it is given, it is
checked.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from instar.cli.shared.failure import CliFailure
from instar.kube.api.names import GroupKind

if TYPE_CHECKING:
    from instar.tools.sdk.converter import BuiltConverter

METAVAR = "[CRD=]MODULE:NAME"
HELP = (
    "a converter, or [CRD=]conversion.yaml; may be repeated. CRD is optional, because a converter "
    "names its kind"
)
_USAGE = 2


class GivenConverter(NamedTuple):
    """A loaded converter and how the command line named it."""

    crd: str
    """The CRD's name; empty where only the converter was named."""
    spec: str
    """``package.module:name`` or the path of a file."""
    built: BuiltConverter

    @property
    def key(self) -> str:
        """The CRD's name, or ``Kind.group``; see ``wire/conversion/in_process.py``."""
        return self.crd or str(GroupKind(self.built.group, self.built.kind))

    def converts(self, crd: str, kind: str) -> bool:
        """Return whether this converter is meant for the CRD of that name and kind."""
        group = crd.partition(".")[2]
        return self.crd in ("", crd) and (self.built.kind, self.built.group) == (kind, group)


def add_converter_argument(
    parser: argparse._ActionsContainer, note: str = "", *, required: bool = False
) -> None:
    """Add ``--converter``; ``note`` is what this command adds to the common help text."""
    parser.add_argument(
        "--converter",
        action="append",
        default=None if required else [],
        required=required,
        metavar=METAVAR,
        help=f"{HELP}. {note}" if note else HELP,
    )


def split_converter(text: str) -> tuple[str, str]:
    """Split ``[CRD=]SPEC`` into the CRD's name, which may be empty, and the rest.

    A "=" after a slash belongs to the path of a file.
    """
    before, equals, spec = text.partition("=")
    if not equals or "/" in before:
        crd, spec = "", text
    else:
        crd = before
        plural, _, group = crd.partition(".")
        if not plural or not group:
            raise CliFailure(
                f"--converter {text}: {crd!r} is not the name of a CRD, which is PLURAL.GROUP; "
                f"expected {METAVAR}",
                _USAGE,
            )
    if not spec:
        raise CliFailure(f"--converter {text}: expected {METAVAR}", _USAGE)
    return crd, spec


def given_converters(texts: Iterable[str]) -> list[GivenConverter]:
    """Load every converter. Raises ``CliFailure`` for one that is unusable or given twice."""
    texts = list(texts)
    if not texts:
        return []
    # Imported here, because few servers convert in their own process.
    from instar.tools.sdk.errors import ConverterDefinitionError
    from instar.tools.sdk.loading import load

    found: list[GivenConverter] = []
    for text in texts:
        crd, spec = split_converter(text)
        try:
            built = load(spec)
        except ConverterDefinitionError as error:
            raise CliFailure(f"--converter {text}: {error}", _USAGE) from error
        if crd and crd.partition(".")[2] != built.group:
            raise CliFailure(
                f"--converter {text}: {spec} converts {built.kind}.{built.group}, whose CRD is "
                f"named PLURAL.{built.group}",
                _USAGE,
            )
        found.append(GivenConverter(crd, spec, built))
    _refuse_second_of_a_kind(found)
    return found


def converter_of(given: Sequence[GivenConverter], crd: str, kind: str) -> GivenConverter | None:
    """Return the converter that is meant for the CRD of that name and kind."""
    return next((each for each in given if each.converts(crd, kind)), None)


def _refuse_second_of_a_kind(given: Sequence[GivenConverter]) -> None:
    specs: dict[str, str] = {}
    for each in given:
        kind = str(GroupKind(each.built.group, each.built.kind))
        if kind in specs:
            raise CliFailure(
                f"--converter: both {specs[kind]} and {each.spec} convert {kind}; give one", _USAGE
            )
        specs[kind] = each.spec
