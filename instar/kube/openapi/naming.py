"""Names in OpenAPI documents: models, tags and operation ids, as clients expect them.

Called by the modules of this package that build models and paths.
"""

from __future__ import annotations

META_PREFIX = "io.k8s.apimachinery.pkg.apis.meta.v1."
SCALE_MODEL = "io.k8s.api.autoscaling.v1.Scale"

_BUILTIN_PACKAGES = {
    "": "io.k8s.api.core",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}


def model_name(group: str, version: str, kind: str, *, builtin: bool) -> str:
    """Return ``com.example.v1.Foo``; built-in kinds keep the package names of their Go types."""
    if builtin:
        package = _BUILTIN_PACKAGES.get(group, f"io.k8s.api.{group.partition('.')[0]}")
    else:
        package = ".".join(reversed(group.split(".")))
    return f"{package}.{version}.{kind}"


def tag(group: str, version: str) -> str:
    """Return the operation tag of a group version, such as ``apps_v1``."""
    return f"{_camel(_short(group), capital=False)}_{_camel(version, capital=False)}"


def operation_infix(group: str, version: str) -> str:
    """Return the part between verb and kind: ``OaIoV1`` in ``listOaIoV1NamespacedOa``."""
    return _camel(_short(group), capital=True) + _camel(version, capital=True)


def group_version_path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _short(group: str) -> str:
    return group.removesuffix(".k8s.io") if group else "core"


def _camel(text: str, *, capital: bool) -> str:
    """Keep letters and digits only, and capitalise after a dropped character."""
    out: list[str] = []
    for position, char in enumerate(text):
        if char.isalpha() or char == "_" or (position and char.isdigit()):
            out.append(char.upper() if capital else char)
            capital = False
        else:
            capital = True
    return "".join(out)
