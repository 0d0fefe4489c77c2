"""The same in asyncio, with kr8s."""

import asyncio

import kr8s
import kr8s.asyncio
import pytest
from kr8s.asyncio.objects import new_class

# kr8s knows the releases of its own time.
pytestmark = [
    pytest.mark.instar_crds("crds.yaml"),
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),
]


def test_a_missing_field_is_refused(instar, instar_namespace):
    asyncio.run(refuse_without_schedule(str(instar.kubeconfig), instar_namespace))


async def refuse_without_schedule(kubeconfig, namespace):
    api = await kr8s.asyncio.api(kubeconfig=kubeconfig, namespace=namespace)
    kind = new_class("CronTab", "testing.example.com/v1", asyncio=True, plural="crontabs")
    crontab = await kind({"metadata": {"name": "empty"}, "spec": {}}, api=api, namespace=namespace)

    with pytest.raises(kr8s.ServerError, match=r"spec\.cronSpec: Required value"):
        await crontab.create()

    await api._session.aclose()
