"""Claim mapping: from the claims of a token to a user, by an issuer's mappings and CEL rules.

``oidc/issuer.py`` calls it for each verified token; expressions are compiled once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import thread_time
from typing import Any

from instar.base.field_errors import FieldError, child, index, invalid
from instar.kube.access.attributes import User
from instar.kube.cel.cel_to_json import to_json
from instar.kube.cel.engine import BadExpression, BadProgram, CelRunner, analyse, prepare
from instar.kube.cel.host_types import record
from instar.kube.cel.types import BOOL, DYN, NULL, STRING, Type, list_of, map_of
from instar.kube.cel.values import CelError, CostExceeded
from instar.server.identity.client_certificates import with_authenticated
from instar.server.identity.jwt import text_of
from instar.server.identity.oidc.config import ClaimMapping, TrustedIssuer
from instar.server.identity.service_accounts import CREDENTIAL_ID
from instar.server.identity.tokens import TokenRejected

_COST_LIMIT, _TIME_LIMIT = 10_000_000, 1.0
"""Limits of one CEL expression: its cost, and seconds of processor time."""
_CLAIMS = {"claims": map_of(STRING, DYN)}
_TEXTS = list_of(STRING)
_USER = {
    "user": record(
        "kubernetes.UserInfo",
        {
            "username": STRING,
            "uid": STRING,
            "groups": _TEXTS,
            "extra": map_of(STRING, _TEXTS),
        },
    )
}
_TEXT, _LISTED, _BOOLEAN = (STRING, DYN), (STRING, _TEXTS, list_of(DYN), NULL, DYN), (BOOL,)


class ClaimExpression:
    """A compiled CEL expression over claims or a user."""

    def __init__(self, source: str, variables: Mapping[str, Type], returns: Sequence[Type]) -> None:
        """Raises ``ValueError`` for an expression that does not compile."""
        self.source = source
        try:
            checked = analyse(source, variables)
            self._runner: CelRunner = prepare(checked, tuple(variables))
        except (BadExpression, BadProgram) as error:
            raise ValueError(f"compilation failed: {error}") from error
        if checked.type not in returns:
            wanted = " or ".join(str(each) for each in returns if each is not DYN)
            raise ValueError(f"must evaluate to {wanted}")

    def value(self, *values: Any) -> Any:
        """The result. Raises ``TokenRejected`` if the evaluation fails."""
        try:
            found, _ = self._runner.run(values, _COST_LIMIT, thread_time() + _TIME_LIMIT)
        except CostExceeded as error:
            raise TokenRejected(self._failed("it costs too much")) from error
        if isinstance(found, CelError):
            raise TokenRejected(self._failed(str(found)))
        try:
            return to_json(found)
        except CelError as error:
            raise TokenRejected(self._failed(str(error))) from error

    def _failed(self, why: str) -> str:
        return f"expression '{self.source}' resulted in error: {why}"


class Claims:
    """An issuer's mappings and rules, compiled."""

    def __init__(self, issuer: TrustedIssuer) -> None:
        """Raises ``ValueError``: all expressions that cannot be compiled, as field errors."""
        self._issuer = issuer
        self._wrong: list[FieldError] = []
        place = "claimMappings"
        self._username = self._of(issuer.username, child(place, "username"), _TEXT)
        self._groups = self._of(issuer.groups, child(place, "groups"), _LISTED)
        self._uid = self._of(issuer.uid, child(place, "uid"), _TEXT)
        self._extra = [
            (key, self._compiled(text, child(index("claimMappings.extra", at), "valueExpression")))
            for at, (key, text) in enumerate(issuer.extra)
        ]
        self._claim_rules = [
            (rule, self._compiled(rule.expression, index("claimValidationRules", at), _BOOLEAN))
            for at, rule in enumerate(issuer.claim_rules)
            if rule.expression
        ]
        self._user_rules = [
            (
                rule,
                self._compiled(rule.expression, index("userValidationRules", at), _BOOLEAN, _USER),
            )
            for at, rule in enumerate(issuer.user_rules)
        ]
        self.errors = tuple(self._wrong)

    def _of(
        self, mapping: ClaimMapping | None, where: str, returns: Sequence[Type]
    ) -> ClaimExpression | None:
        if mapping is None or not mapping.expression:
            return None
        return self._compiled(mapping.expression, child(where, "expression"), returns)

    def _compiled(
        self,
        text: str,
        where: str,
        returns: Sequence[Type] = _LISTED,
        variables: Mapping[str, Type] = _CLAIMS,
    ) -> ClaimExpression | None:
        try:
            return ClaimExpression(text, variables, returns)
        except ValueError as error:
            self._wrong.append(invalid(where, text, str(error)))
            return None

    def user_of(self, claims: dict[str, Any]) -> User:
        """Raises ``TokenRejected`` with kube-apiserver's message."""
        name = self._name(claims)
        groups = self._listed("groups", self._issuer.groups, self._groups, claims)
        uid = self._uid_of(claims)
        extra = self._extra_of(claims)
        self._check_claims(claims)
        shown = {
            "username": name,
            "uid": uid,
            "groups": list(groups),
            "extra": {key: list(values) for key, values in extra.items()},
        }
        for rule, expression in self._user_rules:
            assert expression is not None
            _check(expression, rule.message, "user info validation rule", shown)
        token_id = text_of(claims.get("jti"))
        if token_id:
            extra = {CREDENTIAL_ID: (f"JTI={token_id}",), **extra}
        return User(name, with_authenticated(name, groups), uid, extra)

    def _name(self, claims: dict[str, Any]) -> str:
        mapping = self._issuer.username
        if self._username is not None:
            value = _run(self._username, "username claim", claims)
            if not isinstance(value, str):
                raise TokenRejected(
                    "oidc: error evaluating username claim expression: expression must return a "
                    "string"
                )
            if not value:
                raise TokenRejected(
                    "oidc: error evaluating username claim expression: empty string"
                )
            return value
        if mapping.claim not in claims:
            raise TokenRejected(f'oidc: parse username claims "{mapping.claim}": claim not present')
        value = claims[mapping.claim]
        if not isinstance(value, str) or not value:
            raise TokenRejected(f'oidc: parse username claims "{mapping.claim}": it is no string')
        if mapping.claim == "email" and claims.get("email_verified", True) is not True:
            raise TokenRejected("oidc: email not verified")
        return mapping.prefix + value

    def _uid_of(self, claims: dict[str, Any]) -> str:
        if self._uid is not None:
            value = _run(self._uid, "uid claim", claims)
            if not isinstance(value, str):
                raise TokenRejected(
                    "oidc: error evaluating uid claim expression: expression must return a string"
                )
            return value
        mapping = self._issuer.uid
        if mapping is None:
            return ""
        if mapping.claim not in claims:
            raise TokenRejected(f'oidc: parse uid claim "{mapping.claim}": claim not present')
        return text_of(claims[mapping.claim])

    def _listed(
        self,
        what: str,
        mapping: ClaimMapping | None,
        expression: ClaimExpression | None,
        claims: dict[str, Any],
    ) -> tuple[str, ...]:
        if expression is not None:
            return _texts(_run(expression, f"{what} claim", claims), what)
        if mapping is None or claims.get(mapping.claim) is None:
            return ()
        value = claims[mapping.claim]
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise TokenRejected(
                f'oidc: parse {what} claim "{mapping.claim}": it is no list of strings'
            )
        return tuple(mapping.prefix + each for each in values)

    def _extra_of(self, claims: dict[str, Any]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for key, expression in self._extra:
            assert expression is not None
            values = _texts(_run(expression, "extra claim", claims), "extra")
            if values:
                found[key] = values
        return found

    def _check_claims(self, claims: dict[str, Any]) -> None:
        for rule in self._issuer.claim_rules:
            if not rule.claim:
                continue
            if rule.claim not in claims:
                raise TokenRejected(f"oidc: required claim {rule.claim} not present in ID token")
            value = claims[rule.claim]
            if value != rule.required:
                raise TokenRejected(
                    f"oidc: required claim {rule.claim} value does not match. Got = "
                    f"{text_of(value)}, want = {rule.required}"
                )
        for rule, expression in self._claim_rules:
            assert expression is not None
            _check(expression, rule.message, "claim validation expression", claims)


def _run(expression: ClaimExpression, what: str, claims: dict[str, Any]) -> Any:
    try:
        return expression.value(claims)
    except TokenRejected as refused:
        raise TokenRejected(f"oidc: error evaluating {what} expression: {refused}") from refused


def _check(expression: ClaimExpression, message: str, what: str, value: Any) -> None:
    try:
        holds = expression.value(value)
    except TokenRejected as refused:
        raise TokenRejected(f"oidc: error evaluating {what}: {refused}") from refused
    if holds is not True:
        told = message or "the rule does not hold"
        raise TokenRejected(
            f"oidc: error evaluating {what}: validation expression '{expression.source}' failed: "
            f"{told}"
        )


def _texts(value: Any, what: str) -> tuple[str, ...]:
    """Texts of a claim; empty ones and null are dropped."""
    values = [value] if isinstance(value, str) else value
    if values is None:
        return ()
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise TokenRejected(
            f"oidc: error evaluating {what} claim expression: expression must return a string or "
            "a list of strings"
        )
    return tuple(each for each in values if each)
