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

from tests.support.sources import parsed

ROOT = Path(__file__).resolve().parents[2]

LATE = {
    ("instar/cli/serving/snapshot_store.py", "instar.tools.snapshots.loading"): "only with --from",
    ("instar/tools/testing/api_server.py", "instar.tools.snapshots.loading"): "only with from_",
    ("instar/cli/serving/snapshot_store.py", "instar.tools.snapshots.errors"): "only with --from",
    ("instar/tools/snapshots/sources.py", "instar.tools.snapshots.live"): "only for kube:",
    ("instar/cli/commands/storage.py", "rich.console"): "only for copy; verify works without it",
    ("instar/cli/commands/storage.py", "rich.progress"): "only for copy; verify works without it",
    # Parts of `instar serve` that most servers never need and that would delay their start.
    ("instar/cli/commands/serve.py", "instar.tools.reviewer.reviewing"): "only with --review",
    ("instar/cli/shared/converters.py", "instar.tools.sdk.loading"): "only with --converter",
    ("instar/cli/shared/converters.py", "instar.tools.sdk.errors"): "only with --converter",
    **{
        ("instar/tools/console/setup.py", f"instar.tools.console.{name}"): "only for a browser"
        for name in (
            "api",
            "assets",
            "authentication",
            "hosts.embedded",
            "oidc",
            "pages",
            "sessions",
        )
    },
    (
        "instar/cli/serving/admission_flags.py",
        "instar.tools.sdk.errors",
    ): "only with --admission-module",
    (
        "instar/cli/serving/admission_flags.py",
        "instar.tools.sdk.admission_reviews",
    ): "only with --admission-module",
    (
        "instar/cli/serving/admission_flags.py",
        "instar.tools.sdk.loading",
    ): "only with --admission-module",
    ("instar/wire/storage/value_dictionary.py", "zstandard"): "only for a large collection",
    ("instar/kube/crds/validation/ca_bundle.py", "cryptography"): "only for a CRD with a caBundle",
    (
        "instar/kube/builtin_rules/advice/tls_pairs.py",
        "instar.kube.builtin_rules.advice.tls_keys",
    ): "cryptography only for TLS Secrets",
    (
        "instar/server/registry/admission/plugins/certificate_signing.py",
        "instar.kube.builtin_rules.signing",
    ): "cryptography only for requests of one signer",
    (
        "instar/server/registry/kinds/printing/printer.py",
        "instar.server.registry.kinds.printing.pods",
    ): "printers are loaded with the first table",
    (
        "instar/server/registry/admission/policies/plugin.py",
        "instar.server.registry.admission.policies.evaluators",
    ): "CEL, with the first policy",
    (
        "instar/server/registry/controllers/policies.py",
        "instar.server.registry.controllers.policy_types",
    ): "CEL, with the first policy",
    ("instar/kube/schema/cel_rules/lazy_engine.py", "instar.kube.schema.cel_rules.check"): "CEL",
    ("instar/kube/schema/cel_rules/lazy_engine.py", "instar.kube.schema.cel_rules.evaluate"): "CEL",
    (
        "instar/server/rest/bodies.py",
        "instar.kube.api.encoding.yaml_text",
    ): "only for bodies in YAML",
    (
        "instar/server/rest/bodies.py",
        "instar.kube.api.encoding.go_yaml_scalars",
    ): "only for bodies in YAML",
    (
        "instar/server/identity/issuer.py",
        "instar.server.identity.keys",
    ): "cryptography only for account tokens",
    (
        "instar/server/files/certificates.py",
        "instar.base.certificates",
    ): "only when some must be made",
    (
        "instar/server/access/identities.py",
        "instar.base.certificates",
    ): "only when a key must be made",
    (
        "instar/server/access/identities.py",
        "instar.server.access.oidc_setup",
    ): "only with issuers elsewhere",
    ("instar/cli/main.py", "instar.cli.serving.process_exit"): "only when instar serve ends",
    (
        "instar/server/lifecycle/optional_parts.py",
        "instar.server.access.webhook_authorizer",
    ): "only with the mode Webhook",
    (
        "instar/server/lifecycle/optional_parts.py",
        "instar.wire.client.kubeconfig",
    ): "only with ImagePolicyWebhook",
    (
        "instar/server/lifecycle/optional_parts.py",
        "instar.wire.client.review_client",
    ): "only with ImagePolicyWebhook",
    (
        "instar/server/lifecycle/homes.py",
        "instar.server.cluster_home.home",
    ): "only behind an aggregation layer",
    (
        "instar/server/lifecycle/lifetime.py",
        "instar.server.cluster_home.home",
    ): "only behind an aggregation layer",
    (
        "instar/server/cluster_home/views.py",
        "instar.server.cluster_home.params",
    ): "CEL, with the first policy",
    (
        "instar/server/cluster_home/views.py",
        "instar.server.registry.admission.policies.params",
    ): "CEL, with the first policy",
    (
        "instar/server/registry/admission/home_views.py",
        "instar.server.registry.admission.policies.params",
    ): "CEL, with the first policy",
    ("instar/server/access/peer_certificates.py", "cryptography"): "only with a front proxy",
    (
        "instar/server/access/peer_certificates.py",
        "cryptography.exceptions",
    ): "only with a front proxy",
    (
        "instar/server/endpoints/documents.py",
        "instar.server.endpoints",
    ): "only for clients that ask for OpenAPI",
    (
        "instar/server/rest/responses.py",
        "instar.kube.api.encoding.yaml_text",
    ): "only for answers in YAML",
    (
        "instar/kube/api/encoding/review_text.py",
        "instar.kube.api.encoding.yaml_text",
    ): "only for answers in YAML",
    **{
        (
            "instar/server/lifecycle/admission_setup.py",
            f"instar.server.registry.admission.{name}",
        ): "CEL, webhooks"
        for name in (
            "request_view",
            "webhooks.call",
            "webhooks.configured",
            "webhooks.in_process_call",
            "webhooks.mutating",
            "webhooks.validating",
        )
    },
    ("instar/wire/storage/open.py", "instar.wire.storage.postgres.store"): "only on PostgreSQL",
    ("instar/wire/storage/open.py", "instar.wire.storage.postgres.url"): "only on PostgreSQL",
    **{
        (
            "instar/wire/storage/open.py",
            f"instar.wire.storage.postgres.{name}",
        ): "only on PostgreSQL"
        for name in ("provisioning", "schema")
    },
    ("instar/wire/storage/postgres/driver.py", "asyncpg"): "only on PostgreSQL",
    (
        "instar/cli/shared/encrypted_stores.py",
        "instar.wire.storage.encryption.store",
    ): "ciphers only where they are used",
    (
        "instar/cli/shared/encrypted_stores.py",
        "instar.wire.storage.encryption.providers",
    ): "ciphers only where they are used",
    (
        "instar/cli/shared/encrypted_stores.py",
        "instar.server.lifecycle.encryption_setup",
    ): "ciphers only where they are used",
    (
        "instar/server/lifecycle/optional_parts.py",
        "instar.server.lifecycle.encryption_setup",
    ): "only with encryption at rest",
    (
        "instar/server/lifecycle/optional_parts.py",
        "instar.server.lifecycle.admission_config",
    ): "only with EventRateLimit",
    (
        "instar/server/lifecycle/optional_parts.py",
        "instar.server.audit.setup",
    ): "only with an audit policy",
    ("instar/wire/storage/encryption/ciphers.py", "nacl.secret"): "libsodium only for secretbox",
    (
        "instar/wire/storage/encryption/ciphers.py",
        "nacl.exceptions",
    ): "libsodium only for secretbox",
    ("instar/wire/storage/open.py", "instar.wire.storage.etcd.store"): "only for etcd",
    ("instar/wire/storage/open.py", "instar.wire.storage.etcd.client"): "only for etcd",
    ("instar/wire/webhooks/transport.py", "urllib.request"): "only behind a proxy",
    (
        "instar/cli/commands/completion.py",
        "instar.cli.main",
    ): "it lists the commands, completion among them",
    **{
        ("instar/base/certificates.py", name): "only for an authority that is there already"
        for name in (
            "cryptography",
            "cryptography.hazmat.primitives.asymmetric",
            "cryptography.hazmat.primitives.serialization",
        )
    },
    (
        "instar/cli/serving/kube_apiserver.py",
        "instar.base.certificates",
    ): "envtest brings certificates itself",
    # Suites that merely have instar installed wait for nothing.
    (
        "instar/tools/testing/plugin.py",
        "instar.tools.testing.api_server",
    ): "only for the fixture instar",
    (
        "instar/tools/testing/plugin.py",
        "instar.tools.testing.served_requests",
    ): "only for the fixture instar",
    ("instar/tools/testing/plugin.py", "instar.tools.testing.webhooks"): "only for instar_webhook",
    (
        "instar/tools/testing/plugin.py",
        "instar.tools.testing.suites",
    ): "only for suites of instar test",
    # Libraries that take longer to import than the tool runs without them.
    (
        "instar/cli/commands/webhook.py",
        "instar.tools.sdk.certificates",
    ): "cryptography only with --self-signed",
    (
        "instar/cli/commands/webhook.py",
        "instar.tools.sdk.crd_patch",
    ): "cryptography only with --patch-crd",
    (
        "instar/wire/client/client.py",
        "instar.wire.client.http",
    ): "aiohttp only for tools that ask a cluster",
    (
        "instar/tools/sdk/checking/responders.py",
        "instar.wire.client.http",
    ): "aiohttp only with --url",
    **{
        ("instar/tools/console/jobs/worker.py", name): "each job brings half of a tool along"
        for name in (
            "instar.tools.console.jobs.checking",
            "instar.tools.console.jobs.reviewing",
            "instar.tools.sdk.checking.case",
        )
    },
    # Not a dependency of ours.
    ("instar/tools/sdk/typed.py", "msgspec"): "only for converters on its classes",
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
        for function in ast.walk(parsed(file)):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                for name in _imported(node):
                    yield str(file.relative_to(ROOT)), name


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or "."]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
