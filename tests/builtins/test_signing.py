"""CertificateSigningRequests: who decides, who answers, and what cannot be taken back."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.support.server import Answer, LiveServer, live_server

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MERGE = "application/merge-patch+json"
SIGNER = "example.com/signer"


SIGNED_WITH_SHA1 = """\
-----BEGIN CERTIFICATE REQUEST-----
MIIBTTCBtwIBADAOMQwwCgYDVQQDDANvbGQwgZ8wDQYJKoZIhvcNAQEBBQADgY0A
MIGJAoGBALeCyuu+jGFMiOqfu77CczszTFZO98XGFXqhsUO89v2Kkst2Y6IG1a32
OZv/Cf/cLmtKaTE5UmwImDGEBHoqU+gDQgEs3F9dm8bP4J96HUKgJjkSI7waBiH7
Cb/ULeVHvzoavt9pSL8ZQ3Tdb2HLLXfGilYwVI/y3wImE08kY35ZAgMBAAGgADAN
BgkqhkiG9w0BAQUFAAOBgQB5Fa/4XeBIBtAoPDIsRJMaaLP6qdn82RCMMh80gV7Y
TLGP5oDGawwVbuzeP87sWkOzSCyOBonjVBM8hn9EDmw5r/m9EP3nT3iPgTU6vygo
tekDAB1tKFXeV0gKYYDX0Uo6b1Bf/pHdzJ3Pz2HVSFvCpCp6VPzVjyBqu2HXyEIr
9w==
-----END CERTIFICATE REQUEST-----
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    tokens: Path = tmp_path_factory.mktemp("tokens") / "tokens.csv"
    tokens.write_text('a,admin,1,"system:masters"\nj,jane,2\n')
    with live_server(token_file=tokens) as server:
        role = {
            "metadata": {"name": "jane"},
            "rules": [
                {
                    "apiGroups": ["certificates.k8s.io"],
                    "resources": ["certificatesigningrequests", "*/approval", "*/status"],
                    "verbs": ["*"],
                }
            ],
        }
        subject = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
        binding = {
            "metadata": {"name": "jane"},
            "roleRef": {"kind": "ClusterRole", "name": "jane"},
            "subjects": [subject],
        }
        group = "/apis/rbac.authorization.k8s.io/v1"
        server.request("POST", f"{group}/clusterroles", role, token="a")
        server.request("POST", f"{group}/clusterrolebindings", binding, token="a")
        yield server


def request(organization: str = "team") -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    names = [
        x509.NameAttribute(NameOID.COMMON_NAME, "me"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
    ]
    asked = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    return base64.b64encode(asked.sign(key, SHA256()).public_bytes(Encoding.PEM)).decode()


def ask(server: LiveServer, name: str, signer: str = SIGNER, text: str = "") -> Answer:
    spec = {"request": text or request(), "signerName": signer, "usages": ["client auth"]}
    return server.request("POST", PATH, {"metadata": {"name": name}, "spec": spec}, token="a")


def decide(server: LiveServer, name: str, *types: str, token: str = "a") -> Answer:
    conditions = [{"type": type, "status": "True", "reason": "Test"} for type in types]
    body = {"status": {"conditions": conditions}}
    path = f"{PATH}/{name}/approval"
    return server.request("PATCH", path, body, content_type=MERGE, token=token)


def answer(server: LiveServer, name: str, status: dict[str, Any]) -> Answer:
    path = f"{PATH}/{name}/status"
    return server.request("PATCH", path, {"status": status}, content_type=MERGE, token="a")


def test_an_approval_is_stamped_and_stays(server: LiveServer) -> None:
    ask(server, "approved")

    done = decide(server, "approved", "Approved")
    taken_back = decide(server, "approved")

    [condition] = done.json["status"]["conditions"]
    assert condition["lastUpdateTime"] == condition["lastTransitionTime"]
    assert taken_back.status == 422
    assert taken_back.json["message"].endswith(
        'status.conditions: Forbidden: updates may not remove a condition of type "Approved"'
    )


def test_a_request_is_not_approved_and_denied(server: LiveServer) -> None:
    ask(server, "both")

    refused = decide(server, "both", "Approved", "Denied")

    assert refused.status == 422
    assert "Approved and Denied conditions are mutually exclusive" in refused.text


def test_status_cannot_approve_and_approval_cannot_issue(server: LiveServer) -> None:
    ask(server, "separate")

    approved = answer(server, "separate", {"conditions": [{"type": "Approved", "status": "True"}]})
    decide(server, "separate", "Approved")
    nonsense = answer(server, "separate", {"certificate": base64.b64encode(b"x").decode()})

    assert 'updates may not add a condition of type \\"Approved\\"' in approved.text
    assert "must contain at least one CERTIFICATE PEM block" in nonsense.text


def test_approval_needs_permission_for_the_signer(server: LiveServer) -> None:
    ask(server, "jane")

    refused = decide(server, "jane", "Approved", token="j")

    assert refused.status == 403
    assert refused.json["message"] == (
        'certificatesigningrequests.certificates.k8s.io "jane" is forbidden: user not permitted '
        'to approve requests with signerName "example.com/signer"'
    )


def test_a_signing_request_for_the_admin_group_is_refused(server: LiveServer) -> None:
    text = request("system:masters")

    refused = ask(server, "admin", "kubernetes.io/kube-apiserver-client", text)

    assert refused.status == 403
    assert "with system:masters group is not allowed" in refused.json["message"]


def test_a_request_must_be_signed_by_its_key(server: LiveServer) -> None:
    pem = base64.b64decode(request()).decode().splitlines()
    pem[-2] = "AAAA" + pem[-2][4:]

    refused = ask(server, "forged", text=base64.b64encode("\n".join(pem).encode()).decode())

    assert refused.status == 422
    assert [cause["field"] for cause in refused.json["details"]["causes"]] == ["spec.request"]


@pytest.mark.parametrize(("forged", "status"), [(False, 201), (True, 422)])
def test_a_signature_may_use_sha1(server: LiveServer, forged: bool, status: int) -> None:
    text = SIGNED_WITH_SHA1.replace("Y35Z", "Y36Z") if forged else SIGNED_WITH_SHA1

    told = ask(server, f"old-{status}", text=base64.b64encode(text.encode()).decode())

    assert told.status == status
