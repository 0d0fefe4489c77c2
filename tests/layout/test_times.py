"""One place writes times: ``strftime`` leaves out the zeros of years before 1000, and what is
stored so cannot be read as protobuf by anybody."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.sources import parsed

ROOT = Path(__file__).resolve().parents[2]
LISTED = {
    "instar/kube/cel/time_text.py": "writes the year itself",
    "instar/base/der.py": "certificates of our own, of this century",
    "instar/server/identity/oidc/issuer.py": "a sentence of a refusal",
    "instar/server/audit/logfile.py": "a file's name, of this century",
}


def test_times_are_written_in_one_place() -> None:
    found = {str(file.relative_to(ROOT)) for file in ROOT.glob("instar/**/*.py") if _formats(file)}

    assert found - LISTED.keys() == set(), "use instar.base.times"


def _formats(file: Path) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == "strftime"
        for node in ast.walk(parsed(file))
    )
