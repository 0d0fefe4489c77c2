"""Asks the cluster for the identity behind a client's credentials, by a SelfSubjectReview.

The pages show the identity. The review and check views limit the number of jobs per identity.
"""

from __future__ import annotations

from instar.base.json_values import Object
from instar.wire.client.client import Client

_PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


async def review_own_identity(client: Client) -> Object:
    answer = await client.post(_PATH, _REVIEW)
    user = (answer.get("status") or {}).get("userInfo") or {}
    return {
        "username": user.get("username") or "",
        "groups": user.get("groups") or [],
        "uid": user.get("uid") or "",
    }


async def user_name(client: Client) -> str:
    return str((await review_own_identity(client))["username"])
