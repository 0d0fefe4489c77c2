"""Checks the visitor's permissions for actions by SelfSubjectAccessReviews.

Used by ``migration_state.py``.
"""

from __future__ import annotations

import asyncio

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.wire.client.client import Client

Wanted = tuple[str, str, str, str]
"""Verb, group, resource, subresource."""
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


async def missing(client: Client, wanted: dict[str, Wanted]) -> dict[str, list[str]]:
    """Return by action the permission that the visitor lacks. If a check fails, the permission is
    assumed, because the action itself is authorized as well."""
    answers = await asyncio.gather(*(_allowed(client, right) for right in wanted.values()))
    return {
        action: [_text(right)]
        for (action, right), allowed in zip(wanted.items(), answers, strict=True)
        if not allowed
    }


async def _allowed(client: Client, right: Wanted) -> bool:
    verb, group, resource, subresource = right
    review: Object = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "verb": verb,
                "group": group,
                "resource": resource,
                "subresource": subresource,
            }
        },
    }
    try:
        answer = await client.post(_REVIEWS, review)
    except ApiError:
        return True
    return bool((answer.get("status") or {}).get("allowed"))


def _text(right: Wanted) -> str:
    verb, group, resource, subresource = right
    return f"{verb} {resource}.{group}" + (f"/{subresource}" if subresource else "")
