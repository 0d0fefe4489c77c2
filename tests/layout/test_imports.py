"""Imports stand at the top, so that a module's first lines say what it knows.

The few that wait for their first use are listed here with the reason; a comment at the place
says the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[2]

LATE = {
    ("instar/cli/captured.py", "instar.snapshots.loading"): "only with --from",
    ("instar/testing/serving.py", "instar.snapshots.loading"): "only with from_",
    ("instar/cli/captured.py", "instar.snapshots.errors"): "only with --from",
    ("instar/snapshots/sources.py", "instar.snapshots.live"): "only for kube:",
    # Parts of `instar serve` that most servers never need and that would delay their start.
    ("instar/cli/serve.py", "instar.review"): "only with --review",
    ("instar/cli/converters.py", "instar.sdk"): "only with --converter",
    **{
        ("instar/console/opening.py", f"instar.console.{name}"): "only for a browser"
        for name in ("api", "assets", "hosts.within", "oidc", "pages", "sessions", "visitors")
    },
    ("instar/cli/admission.py", "instar.sdk"): "only with --admission-module",
    ("instar/cli/admission.py", "instar.sdk.admission_reviews"): "only with --admission-module",
    ("instar/cli/admission.py", "instar.sdk.loading"): "only with --admission-module",
    ("instar/crds/ca_bundle.py", "cryptography"): "only for a CRD with a caBundle",
    (
        "instar/registry/admission/certificates.py",
        "instar.registry.kinds.checks.signing",
    ): "cryptography only for requests of one signer",
    (
        "instar/registry/kinds/printing/printer.py",
        "instar.registry.kinds.printing.pods",
    ): "printers are loaded with the first table",
    (
        "instar/registry/admission/policies/plugin.py",
        "instar.registry.admission.policies.working",
    ): "CEL, with the first policy",
    (
        "instar/registry/controllers/policies.py",
        "instar.registry.controllers.policy_types",
    ): "CEL, with the first policy",
    ("instar/schema/validations/ondemand.py", "instar.schema.validations.check"): "CEL",
    ("instar/schema/validations/ondemand.py", "instar.schema.validations.evaluate"): "CEL",
    ("instar/server/rest/bodies.py", "instar.api.yamltext"): "only for bodies in YAML",
    ("instar/server/rest/bodies.py", "instar.api.goyaml"): "only for bodies in YAML",
    ("instar/identity/issuer.py", "instar.identity.keys"): "cryptography only for account tokens",
    ("instar/server/files/certificates.py", "instar.certificates"): "only when some must be made",
    ("instar/server/access/identities.py", "instar.certificates"): "only when a key must be made",
    (
        "instar/server/access/identities.py",
        "instar.server.access.trusting",
    ): "only with issuers elsewhere",
    (
        "instar/server/life/lifetime.py",
        "instar.server.access.authorizing",
    ): "only with the mode Webhook",
    ("instar/server/access/peers.py", "cryptography"): "only with a front proxy",
    ("instar/server/access/peers.py", "cryptography.exceptions"): "only with a front proxy",
    (
        "instar/server/pages/documents.py",
        "instar.server.pages",
    ): "only for clients that ask for OpenAPI",
    ("instar/server/rest/responses.py", "instar.api.yamltext"): "only for answers in YAML",
    ("instar/api/admission_review.py", "instar.api.yamltext"): "only for answers in YAML",
    **{
        ("instar/server/life/admitting.py", f"instar.registry.admission.{name}"): "CEL, webhooks"
        for name in ("calling", "hooks", "local", "mutating", "subject", "validating")
    },
    ("instar/cli/sealed.py", "instar.storage.encryption.store"): "ciphers only where they are used",
    ("instar/cli/sealed.py", "instar.storage.encryption.vault"): "ciphers only where they are used",
    ("instar/cli/sealed.py", "instar.server.life.atrest"): "ciphers only where they are used",
    ("instar/server/life/guards.py", "instar.server.life.atrest"): "only with encryption at rest",
    (
        "instar/server/life/guards.py",
        "instar.server.life.admissionconfig",
    ): "only with EventRateLimit",
    ("instar/server/life/guards.py", "instar.server.audit.setup"): "only with an audit policy",
    ("instar/storage/encryption/ciphers.py", "nacl.secret"): "libsodium only for secretbox",
    ("instar/storage/encryption/ciphers.py", "nacl.exceptions"): "libsodium only for secretbox",
    ("instar/storage/open.py", "instar.storage.etcd"): "only for etcd",
    ("instar/storage/open.py", "instar.storage.etcd_client"): "only for etcd",
    ("instar/webhooks/transport.py", "urllib.request"): "only behind a proxy",
    ("instar/cli/completion.py", "instar.cli.main"): "it lists the commands, completion among them",
    **{
        ("instar/certificates.py", name): "only for an authority that is there already"
        for name in (
            "cryptography",
            "cryptography.hazmat.primitives.asymmetric",
            "cryptography.hazmat.primitives.serialization",
        )
    },
    ("instar/cli/apiserver.py", "instar.certificates"): "envtest brings certificates itself",
    # Suites that merely have instar installed wait for nothing.
    ("instar/testing/plugin.py", "instar.testing.serving"): "only for the fixture instar",
    ("instar/testing/plugin.py", "instar.testing.webhooks"): "only for instar_webhook",
    ("instar/testing/plugin.py", "instar.testing.suites"): "only for suites of instar test",
    # Libraries that take longer to import than the tool runs without them.
    ("instar/cli/webhook.py", "instar.sdk.certificates"): "cryptography only with --self-signed",
    ("instar/cli/webhook.py", "instar.sdk.crdpatch"): "cryptography only with --patch-crd",
    ("instar/client/client.py", "instar.client.http"): "aiohttp only for tools that ask a cluster",
    ("instar/sdk/checking/responders.py", "instar.client.http"): "aiohttp only with --url",
    **{
        ("instar/console/jobs/worker.py", name): "each job brings half of a tool along"
        for name in (
            "instar.console.jobs.checking",
            "instar.console.jobs.reviewing",
            "instar.sdk.checking.case",
        )
    },
    # Not a dependency of ours.
    ("instar/sdk/typed.py", "msgspec"): "only for converters on its classes",
}
"""(file, module imported inside a function) → why."""


def test_only_listed_imports_wait_for_their_first_use() -> None:
    found = set(_late_imports())

    assert found - LATE.keys() == set(), "move it to the top, or list it with a reason"
    assert LATE.keys() - found == set(), "no longer there: take it off the list"


def test_no_module_imports_itself_through_others() -> None:
    graph = grimp.build_graph("instar", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}

    order = list(TopologicalSorter(imports).static_order())

    assert len(order) == len(imports)


def _late_imports() -> Iterator[tuple[str, str]]:
    for file in sorted((ROOT / "instar").rglob("*.py")):
        for function in ast.walk(ast.parse(file.read_text())):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                for name in _imported(node):
                    yield str(file.relative_to(ROOT)), name


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or "."]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
