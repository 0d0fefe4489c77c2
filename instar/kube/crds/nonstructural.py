"""Content of the ``NonStructuralSchema`` condition: why a stored CRD's schemas are not structural.

Called by ``conditions.py``.
"""

from __future__ import annotations

from instar.base.field_errors import FieldError, invalid, messages
from instar.base.json_values import Object
from instar.kube.crds.validation.unsupported_schema import conversion_problem
from instar.kube.schema.structure.structural_rules import structural_errors


def schema_violations(spec: Object) -> tuple[str, str, str]:
    """Return status, reason and message of the condition for a v1 spec; empty if all are
    structural."""
    errors: list[FieldError] = []
    if spec.get("preserveUnknownFields"):
        errors.append(invalid("spec.preserveUnknownFields", True, "must be false"))
    for position, version in enumerate(spec.get("versions") or ()):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            continue
        path = f"spec.versions[{position}].schema.openAPIV3Schema"
        problem = conversion_problem(schema)
        if problem is not None:
            text = f"failed to check validation schema for version {version['name']}: {problem}"
            return "Unknown", "StructuralError", text
        errors += structural_errors(schema, path)
    if not errors:
        return "", "", ""
    return "True", "Violations", messages(errors)
