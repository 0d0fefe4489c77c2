"""The configurations that docs/how-to/security.md shows can be used as they stand."""

from __future__ import annotations

import re
from base64 import b64encode
from pathlib import Path
from typing import Any

from instar.kube.api.encoding.yaml_text import read_yaml
from instar.server.audit import policy
from instar.wire.storage.encryption import config

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "security.md").read_text()


def shown(kind: str) -> Any:
    found = [
        text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.S) if f"kind: {kind}" in text
    ]
    assert len(found) == 1
    secret = b64encode(bytes(32)).decode()
    return read_yaml(found[0].replace("BASE64_OF_32_BYTES", secret).encode())[0]


def test_the_encryption_configuration_is_one() -> None:
    (rule,) = config.read(shown("EncryptionConfiguration"))

    assert [type(each).__name__ for each in rule.providers] == [
        "Keyed",
        "Keyed",
        "Kms",
        "IdentityProvider",
    ]


def test_the_audit_policy_is_one_without_unknown_fields() -> None:
    found = policy.read(shown("Policy"))

    assert found.unknown == ()
    assert len(found.rules) == 4
