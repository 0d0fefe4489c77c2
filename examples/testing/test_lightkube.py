"""lightkube finds the server by $KUBECONFIG, as it would find a cluster."""

import pytest
from lightkube import Client
from lightkube.generic_resource import create_namespaced_resource

pytestmark = pytest.mark.instar_crds("crds.yaml")
CronTab = create_namespaced_resource("testing.example.com", "v1", "CronTab", "crontabs")


def test_what_is_applied_can_be_listed(instar, instar_namespace):
    client = Client(field_manager="my-operator", namespace=instar_namespace)
    crontab = CronTab(metadata={"name": "nightly"}, spec={"cronSpec": "0 3 * * *"})

    client.create(crontab)

    assert [found.metadata.name for found in client.list(CronTab)] == ["nightly"]
    client._client._client.close()
