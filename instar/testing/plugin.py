"""Public API: the pytest plugin, which pytest loads as soon as instar is installed."""

from instar.tools.testing.plugin import (
    _installed,
    instar,
    instar_kubeconfig,
    instar_namespace,
    instar_webhook,
    pytest_addoption,
    pytest_collect_file,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_runtest_makereport,
    pytest_runtest_setup,
)

__all__ = [
    "_installed",
    "instar",
    "instar_kubeconfig",
    "instar_namespace",
    "instar_webhook",
    "pytest_addoption",
    "pytest_collect_file",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
]
