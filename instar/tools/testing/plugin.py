"""The pytest plugin: provides a server as fixtures, active as soon as instar is installed.

pytest loads it through ``instar.testing.plugin``. Importing it is cheap; the first test that uses
``instar`` starts the server, one per xdist worker. From then on KUBECONFIG names that server and
the environment variables of a pod are hidden, so that no client can reach another cluster.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import traceback
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from instar.tools.testing.api_server import Server
    from instar.tools.testing.manifests import Source
    from instar.tools.testing.served_requests import ServedRequests
    from instar.tools.testing.webhooks import Handler, Webhook

    ServeWebhook = Callable[..., Webhook]

_MARKER = "instar_crds"
_SUITES = (".suite.yaml", ".suite.yml", ".testsuite.yaml")
_INSTALLED = "instar_crds_of_marker"
_READ_AT_IMPORT = tuple(
    f"{package}.config{module}"
    for package in ("kubernetes", "kubernetes_asyncio")
    for module in ("", ".kube_config")
)
"""Client modules that read KUBECONFIG when imported, which is before any test."""
_IN_A_POD = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def _leave_unrewritten() -> None:
    """Exclude instar from assertion rewriting, which is slower than starting the server."""
    for finder in sys.meta_path:
        marked = getattr(finder, "_must_rewrite", None)
        if isinstance(marked, set):
            marked.discard("instar")


_leave_unrewritten()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("instar", "a Kubernetes API server for tests")
    group.addoption(
        "--instar-crds",
        action="append",
        default=[],
        metavar="PATH",
        help="install the manifests of this file or folder when the server starts",
    )
    group.addoption(
        "--instar-from",
        metavar="SNAPSHOT",
        help="the server begins with what is in this snapshot, folder of manifests or dump",
    )
    parser.addini(_MARKER, "as --instar-crds, relative to this file", type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(*paths): install these files or folders, relative to the test's own folder "
        "or to pytest's root, before the test",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect suites of ``instar test`` by their file name."""
    if not file_path.name.endswith(_SUITES):
        return None
    # Imported here, because most test runs have no suite.
    from instar.tools.testing.suites import SuiteFile

    return SuiteFile.from_parent(parent, path=file_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker(_MARKER):
            item.fixturenames.insert(0, _INSTALLED)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if (used := _server_of(item)) is not None:
        used[1].forget()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the server answered during a test that failed, without instar's own frames."""
    asks = "instar" in getattr(item, "fixturenames", ())
    if asks and call.excinfo is not None:
        _hide_own_frames(call.excinfo.value)
    report = yield
    if report.failed and (used := _server_of(item)) is not None:
        server, served = used
        if shown := served.shown(server):
            report.sections.append(("last requests to instar", shown))
    return report


def _server_of(item: pytest.Item) -> tuple[Server, ServedRequests] | None:
    if "instar" not in getattr(item, "fixturenames", ()):
        return None
    return item.config.stash.get(_running, None)


def _hide_own_frames(error: BaseException | None) -> None:
    """Mark the modules of instar that a traceback goes through as pytest wants it;
    ``--full-trace`` shows them nevertheless.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if str(frame.f_globals.get("__name__", "")).startswith("instar."):
                frame.f_globals["__tracebackhide__"] = True
        error = error.__cause__ or error.__context__


@pytest.fixture(scope="session")
def instar(pytestconfig: pytest.Config) -> Iterator[Server]:
    """A Kubernetes API server: memory store, free port, one for the whole session."""
    try:
        # Imported here, because many test runs never use it.
        from instar.tools.testing.api_server import server
        from instar.tools.testing.served_requests import ServedRequests
    except ModuleNotFoundError as error:
        pytest.fail(f"instar's server needs {error.name}: pip install 'instar[server]'")
    sources = [*pytestconfig.getini(_MARKER), *pytestconfig.getoption("--instar-crds")]
    served = ServedRequests()
    with (
        server(pytestconfig.getoption("--instar-from")) as running,
        served.attached(),
        _only_way_in(running.kubeconfig),
    ):
        pytestconfig.stash[_running] = (running, served)
        running.install(*sources)
        yield running


@pytest.fixture
def instar_kubeconfig(instar: Server) -> Path:
    """The path of an administrator's kubeconfig; $KUBECONFIG is the same."""
    return instar.kubeconfig


@pytest.fixture
def instar_namespace(instar: Server) -> Iterator[str]:
    """The name of a namespace for this test alone, deleted after it."""
    name = f"test-{next(_numbers)}-{os.getpid()}"
    instar.install({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    instar.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def instar_webhook(instar: Server) -> Iterator[ServeWebhook]:
    """``instar_webhook(handler, crd="widgets.example.com")`` or
    ``instar_webhook(handler, configurations="config/webhook")``: served until the test ends."""
    # Imported here, as the server is.
    from instar.tools.testing.webhooks import (
        point_admission,
        point_configurations,
        point_crd,
        webhook,
    )

    with contextlib.ExitStack() as stack:

        def serve(handler: Handler, *, crd: str = "", configurations: Source = "") -> Webhook:
            hook = stack.enter_context(webhook(handler))
            if crd:
                stack.enter_context(point_crd(instar, hook, crd))
            if configurations:
                stack.enter_context(point_configurations(instar, hook, configurations))
            elif hook.admission is not None:
                stack.enter_context(point_admission(instar, hook))
            return hook

        yield serve


@pytest.fixture(name=_INSTALLED)
def _installed(request: pytest.FixtureRequest, instar: Server) -> None:
    """Install the manifests that the marker names, once per set of files."""
    for mark in request.node.iter_markers(_MARKER):
        paths = tuple(_found(request, Path(path)) for path in mark.args)
        known: set[Any] = request.config.stash.setdefault(_done, set())
        if paths not in known:
            instar.install(*paths)
            known.add(paths)


def _found(request: pytest.FixtureRequest, path: Path) -> Path:
    beside = request.path.parent / path
    return beside if beside.exists() else request.config.rootpath / path


@contextlib.contextmanager
def _only_way_in(kubeconfig: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KUBECONFIG", str(kubeconfig))
        for module in _READ_AT_IMPORT:
            if module in sys.modules:
                environment.setattr(f"{module}.KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
        for name in _IN_A_POD:
            environment.delenv(name, raising=False)
        yield


_done = pytest.StashKey[set[Any]]()
_running = pytest.StashKey["tuple[Server, ServedRequests]"]()
_numbers = itertools.count(1)
