"""Renders the manifests of a webhook: Deployment, Service, Certificate and webhook
configurations.

``instar webhook --manifests`` calls it; the user edits the result.
"""

from __future__ import annotations

from typing import Any

import yaml

from instar.base.fast_dataclass import dataclass
from instar.tools.sdk.admission import Admission

_HEADER = """\
# A webhook served by `instar webhook`. Edit the image; it needs instar and your module.
# cert-manager issues the certificate; annotate the CRD so that it also fills in the caBundle:
#   cert-manager.io/inject-ca-from: {namespace}/{name}
# and point a CRD that it converts here:
#   spec:
#     conversion:
#       strategy: Webhook
#       webhook:
#         conversionReviewVersions: [v1, v1beta1]
#         clientConfig:
#           service: {{namespace: {namespace}, name: {name}, path: /convert, port: 443}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What ``instar webhook --manifests`` writes manifests for."""

    name: str
    namespace: str
    image: str
    converters: tuple[str, ...]
    admissions: tuple[Admission, ...] = ()
    """Of those, what also needs configurations."""

    def render(self) -> str:
        header = _HEADER.format(name=self.name, namespace=self.namespace)
        documents = [
            self._deployment(),
            self._service(),
            self._issuer(),
            self._certificate(),
            self._disruption_budget(),
            *self._configurations(),
        ]
        return header + yaml.safe_dump_all(documents, sort_keys=False)

    def _configurations(self) -> list[dict[str, Any]]:
        """Return the webhook configurations; cert-manager adds the caBundle."""

        def client(path: str) -> dict[str, Any]:
            address = {"namespace": self.namespace, "name": self.name, "path": path, "port": 443}
            return {"service": address}

        found = [each for one in self.admissions for each in one.configurations(client)]
        for each in found:
            injected = f"{self.namespace}/{self.name}"
            each["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": injected}
        return found

    def _meta(self) -> dict[str, Any]:
        return {"name": self.name, "namespace": self.namespace, "labels": self._labels()}

    def _labels(self) -> dict[str, str]:
        return {"app.kubernetes.io/name": self.name}

    def _deployment(self) -> dict[str, Any]:
        pod = {
            # It asks nothing of the cluster, so it gets no token.
            "automountServiceAccountToken": False,
            "containers": [self._container()],
            "terminationGracePeriodSeconds": 45,
            "volumes": [{"name": "tls", "secret": {"secretName": f"{self.name}-tls"}}],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        }
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": self._meta(),
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": self._labels()},
                "template": {"metadata": {"labels": self._labels()}, "spec": pod},
            },
        }

    def _container(self) -> dict[str, Any]:
        def probe(path: str) -> dict[str, Any]:
            return {"httpGet": {"path": path, "port": "https", "scheme": "HTTPS"}}

        flags = ["--listen=:9443", "--cert=/tls/tls.crt", "--key=/tls/tls.key", "--drain=5"]
        return {
            "name": "webhook",
            "image": self.image,
            "command": ["instar", "webhook", *self.converters, *flags],
            "ports": [{"name": "https", "containerPort": 9443}],
            "livenessProbe": probe("/healthz"),
            "readinessProbe": probe("/readyz"),
            "resources": {
                "requests": {"cpu": "50m", "memory": "64Mi"},
                "limits": {"memory": "256Mi"},
            },
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [{"name": "tls", "mountPath": "/tls", "readOnly": True}],
        }

    def _service(self) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self._meta(),
            "spec": {
                "selector": self._labels(),
                "ports": [{"name": "https", "port": 443, "targetPort": "https"}],
            },
        }

    def _issuer(self) -> dict[str, Any]:
        return {
            "apiVersion": "cert-manager.io/v1",
            "kind": "Issuer",
            "metadata": self._meta(),
            "spec": {"selfSigned": {}},
        }

    def _certificate(self) -> dict[str, Any]:
        host = f"{self.name}.{self.namespace}.svc"
        return {
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": self._meta(),
            "spec": {
                "secretName": f"{self.name}-tls",
                "dnsNames": [host, f"{host}.cluster.local"],
                "issuerRef": {"kind": "Issuer", "name": self.name},
            },
        }

    def _disruption_budget(self) -> dict[str, Any]:
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": self._meta(),
            "spec": {"minAvailable": 1, "selector": {"matchLabels": self._labels()}},
        }
