"""An operator's test with the official client: KUBECONFIG is set, nothing else is needed."""

import kubernetes
import pytest

pytestmark = pytest.mark.instar_crds("crds.yaml")


@pytest.fixture
def crontabs(instar_kubeconfig):
    client = kubernetes.config.new_client_from_config(str(instar_kubeconfig))
    dynamic = kubernetes.dynamic.DynamicClient(client)
    yield dynamic.resources.get(api_version="testing.example.com/v1", kind="CronTab")
    client.close()
    client.rest_client.pool_manager.clear()


def test_replicas_are_defaulted(crontabs, instar_namespace):
    body = {
        "apiVersion": "testing.example.com/v1",
        "kind": "CronTab",
        "metadata": {"name": "nightly"},
        "spec": {"cronSpec": "0 3 * * *"},
    }

    created = crontabs.create(body=body, namespace=instar_namespace)

    assert created.spec.replicas == 1


def test_a_namespace_is_this_tests_own(crontabs, instar_namespace):
    assert crontabs.get(namespace=instar_namespace).items == []
