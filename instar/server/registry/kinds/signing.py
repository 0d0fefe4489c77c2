"""Strategy of CertificateSigningRequest: immutable spec, ``approval`` and ``status``.

The verbs find it through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.kube.builtin_rules.signing import outcome_errors, signing_request_errors
from instar.kube.schema.metadata.object_meta import NameRule, name_is_path_segment
from instar.kube.schema.pipeline import Warn
from instar.server.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.base.field_errors import FieldError
    from instar.server.registry.resources.serving import VersionServing


class SigningRequestStrategy(BuiltinStrategy):
    """Updates of the spec have no effect."""

    name_rule: NameRule = staticmethod(name_is_path_segment)

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return signing_request_errors(obj)

    def prepare(self, obj: Object, old: Object | None, version: VersionServing) -> None:
        if old is not None:
            obj["spec"] = old["spec"]

    def prepare_subresource(
        self, subresource: str, new: Object, old: Object, version: VersionServing
    ) -> None:
        """``approval`` writes conditions, ``status`` the whole status."""
        if subresource != "approval":
            super().prepare_subresource(subresource, new, old, version)
            return
        told = (new.get("status") or {}).get("conditions")
        self.prepare_status(new, old, version)
        new["status"] = {
            name: value for name, value in (old.get("status") or {}).items() if name != "conditions"
        }
        if told:
            new["status"]["conditions"] = told

    def check_update(
        self, new: Object, old: Object, version: VersionServing, subresource: str, warn: Warn
    ) -> list[FieldError]:
        found = super().check_update(new, old, version, subresource, warn)
        return [*found, *outcome_errors(new, old, subresource)]
