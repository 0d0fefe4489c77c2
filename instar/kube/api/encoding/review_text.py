"""Reads the body of a review as kube-apiserver does: JSON if it begins with a brace, else YAML.

Called by ``kube/api/conversion_review.py`` and ``admission_review.py``, which know the members.
"""

from __future__ import annotations

from typing import Any

import orjson

from instar.base.json_values import Object
from instar.kube.api.encoding.go_json_errors import go_type, syntax_error
from instar.kube.api.encoding.json_text import TooDeep, decode

SCHEME = "k8s.io/apiserver/pkg/util/webhook/client.go:71"
"""The scheme that upstream's message names when a review has another kind."""
_MOST_YAML = 1 << 20


class MalformedReview(ValueError):
    """The body is no object; the text is the message of Go's decoder."""


def read_review(body: bytes) -> Object:
    """Parse a review. Raises ``MalformedReview``."""
    try:
        review = decode(body)
    except TooDeep as error:
        raise _malformed(str(error)) from error
    except orjson.JSONDecodeError as error:
        if not body.strip() or body.lstrip().startswith(b"{"):
            raise _malformed(syntax_error(body, error.pos)) from error
        review = _yaml(body)
    if not isinstance(review, dict):
        raise _malformed(
            f"json: cannot unmarshal {go_type(review)} into Go value of type struct {{ "
            'APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }'
        )
    return review


def _malformed(why: str) -> MalformedReview:
    return MalformedReview(f"couldn't get version/kind; json parse error: {why}")


def _yaml(body: bytes) -> Any:
    if len(body) > _MOST_YAML:
        raise _malformed("invalid JSON")
    # Imported lazily: nearly all webhooks answer in JSON.
    from instar.kube.api.encoding.yaml_text import read_yaml

    try:
        return read_yaml(body)[0]
    except ValueError as error:
        raise _malformed(str(error)) from error
