"""``instar crd``: generates a CustomResourceDefinition from Python models, one per version.

``kube/models`` reads the models; this module checks the CRD and writes it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from instar.base.importing import NotImportable, import_attribute, is_import_spec
from instar.base.json_values import Object
from instar.cli.shared.failure import CliFailure
from instar.kube.api.crd_codec import CrdDecodeError
from instar.kube.api.encoding.yaml_text import write_yaml
from instar.kube.models.crd_models import Defaults, build_crd
from instar.kube.models.errors import ModelError
from instar.kube.models.reading.roots import root_of
from instar.tools.reviewer.reviewed_crd import read_reviewed_crd
from instar.tools.reviewer.rules.lints import validation_errors

_HELP = """\
A model is a pydantic model, a dataclass, a typed dict or a msgspec struct. Group, version and kind
are those of its fields apiVersion and kind (Literal["example.com/v1"], Literal["Widget"]) or of a
class attribute __crd__, which may say all that a CRD says beside its schemas.

  instar crd widgets:WidgetV1 widgets:WidgetV2 --storage-version v2 > crd.yaml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _HELP
    parser.add_argument("models", nargs="+", metavar="MODULE:MODEL", help="one for each version")
    parser.add_argument("--group", default="", metavar="NAME", help="the API group")
    parser.add_argument("--plural", default="", metavar="NAME", help="the name in paths")
    parser.add_argument(
        "--scope",
        default="",
        choices=("Namespaced", "Cluster"),
        help="where its objects live (default: what the model says, or Namespaced)",
    )
    parser.add_argument(
        "--storage-version", default="", metavar="VERSION", help="what objects are stored at"
    )
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help="default: stdout")
    parser.add_argument("--json", action="store_true", help="JSON instead of YAML")


def run(args: argparse.Namespace) -> int:
    said = Defaults(args.group, args.plural, args.scope, args.storage_version)
    try:
        crd = build_crd([(spec, *root_of(_model(spec))) for spec in args.models], said)
    except ModelError as error:
        raise CliFailure(str(error), 2) from None
    _check_crd(crd)
    if args.json:
        text = json.dumps(crd, indent=2, ensure_ascii=False) + "\n"
    else:
        text = write_yaml(crd).decode()
    if args.output is None:
        sys.stdout.write(text)
        return 0
    try:
        args.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliFailure(f"{args.output}: {error.strerror or error}") from None
    return 0


def _model(spec: str) -> object:
    if not is_import_spec(spec):
        raise CliFailure(f"{spec!r} must have the form package.module:Model", 2)
    try:
        return import_attribute(spec)
    except NotImportable as error:
        raise CliFailure(str(error), 2) from error


def _check_crd(crd: Object) -> None:
    """Reject a CRD that a server would reject."""
    try:
        drafts = list(validation_errors(None, read_reviewed_crd(crd)))
    except CrdDecodeError as error:
        raise CliFailure(f"invalid CRD: {error}") from None
    if drafts:
        texts = "; ".join(f"{draft.path}: {draft.message}" for draft in drafts[:3])
        more = f" (and {len(drafts) - 3} more)" if len(drafts) > 3 else ""
        raise CliFailure(f"a server would reject this CRD: {texts}{more}")
