"""Checks of the level ``baseline``: known privilege escalations.

``evaluation.py`` lists them with the versions they apply to. Each check takes a pod and returns a
violation with upstream's message, or None.
"""

from __future__ import annotations

from instar.base.field_errors import go_quote
from instar.base.json_values import Object
from instar.kube.pod_security.pod_view import (
    PodCheck,
    PodView,
    Violation,
    containers_named,
    context_of,
    names_where,
    plural,
    profile_type,
    quote_names,
    setters,
)

_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_PROFILES = ("RuntimeDefault", "Localhost")
_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
SELINUX_TYPES_1_31 = SELINUX_TYPES | {"container_engine_t"}
_IPV4 = "net.ipv4."
SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        *(f"{_IPV4}{name}" for name in ("ip_local_port_range", "tcp_syncookies")),
        *(f"{_IPV4}{name}" for name in ("ping_group_range", "ip_unprivileged_port_start")),
    }
)
SYSCTLS_1_27 = SYSCTLS | {f"{_IPV4}ip_local_reserved_ports"}
SYSCTLS_1_29 = SYSCTLS_1_27 | {
    f"{_IPV4}tcp_{name}"
    for name in ("keepalive_time", "fin_timeout", "keepalive_intvl", "keepalive_probes")
}
SYSCTLS_1_32 = SYSCTLS_1_29 | {f"{_IPV4}tcp_rmem", f"{_IPV4}tcp_wmem"}


def app_armor_profile(pod: PodView) -> Violation | None:
    values: set[str] = set()

    def is_bad(context: Object) -> bool:
        found = profile_type(context, "appArmorProfile")
        if found is None or found in _PROFILES:
            return False
        values.add(found)
        return True

    pod_is_bad = is_bad(pod.context())
    names = names_where(pod, lambda item: is_bad(context_of(item)))
    annotated = sorted(
        f"{name}={go_quote(value)}"
        for name, value in pod.annotations().items()
        if name.startswith(_APPARMOR)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    found = [setters(pod_is_bad, names)] if pod_is_bad or names else []
    if annotated:
        found.append(plural(len(annotated), "annotation"))
    if not found:
        return None
    shown = [*sorted(values), *annotated]
    return Violation(
        plural(len(shown), "forbidden AppArmor profile"),
        f"{' and '.join(found)} must not set AppArmor profile type to {quote_names(shown)}",
    )


def capabilities(pod: PodView) -> Violation | None:
    added: set[str] = set()

    def is_bad(container: Object) -> bool:
        wanted = (context_of(container).get("capabilities") or {}).get("add") or ()
        bad = {str(name) for name in wanted} - _CAPABILITIES
        added.update(bad)
        return bool(bad)

    names = names_where(pod, is_bad)
    if not names:
        return None
    return Violation(
        "non-default capabilities",
        f"{containers_named(names)} must not include {quote_names(sorted(added))} in "
        "securityContext.capabilities.add",
    )


def host_namespaces(pod: PodView) -> Violation | None:
    found = [name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(name)]
    if not found:
        return None
    return Violation("host namespaces", ", ".join(f"{name}=true" for name in found))


def host_path_volumes(pod: PodView) -> Violation | None:
    volumes = pod.spec.get("volumes") or ()
    names = [str(volume.get("name", "")) for volume in volumes if "hostPath" in volume]
    if not names:
        return None
    return Violation("hostPath volumes", f"{plural(len(names), 'volume')} {quote_names(names)}")


def host_ports(pod: PodView) -> Violation | None:
    ports: set[str] = set()

    def is_bad(container: Object) -> bool:
        used = [port.get("hostPort") for port in container.get("ports") or ()]
        bad = {str(port) for port in used if port}
        ports.update(bad)
        return bool(bad)

    names = names_where(pod, is_bad)
    if not names:
        return None
    return Violation(
        "hostPort",
        f"{containers_named(names)} {plural(len(names), 'uses', 'use')} "
        f"{plural(len(ports), 'hostPort')} {', '.join(sorted(ports))}",
    )


def host_probes_and_lifecycle(pod: PodView) -> Violation | None:
    hosts: set[str] = set()

    def is_bad(container: Object) -> bool:
        lifecycle = container.get("lifecycle") or {}
        handlers = [
            *(container.get(name) for name in ("livenessProbe", "readinessProbe", "startupProbe")),
            *(lifecycle.get(name) for name in ("postStart", "preStop")),
        ]
        bad = {
            str(action["host"])
            for handler in handlers
            for action in ((handler or {}).get("httpGet"), (handler or {}).get("tcpSocket"))
            if action and action.get("host")
        }
        hosts.update(bad)
        return bool(bad)

    names = sorted(set(names_where(pod, is_bad)))
    if not names:
        return None
    return Violation(
        "probe or lifecycle host",
        f"{containers_named(names)} {plural(len(names), 'uses', 'use')} "
        f"{plural(len(hosts), 'probe or lifecycle host')} {quote_names(sorted(hosts))}",
    )


def privileged(pod: PodView) -> Violation | None:
    names = names_where(pod, lambda item: context_of(item).get("privileged") is True)
    if not names:
        return None
    return Violation(
        "privileged", f"{containers_named(names)} must not set securityContext.privileged=true"
    )


def proc_mount(pod: PodView) -> Violation | None:
    types: set[str] = set()

    def is_bad(container: Object) -> bool:
        found = context_of(container).get("procMount")
        if found in (None, "Default"):
            return False
        types.add(str(found))
        return True

    names = names_where(pod, is_bad)
    if not names:
        return None
    return Violation(
        "procMount",
        f"{containers_named(names)} must not set securityContext.procMount to "
        f"{quote_names(sorted(types))}",
    )


def selinux_options(allowed: frozenset[str]) -> PodCheck:
    def check(pod: PodView) -> Violation | None:
        types: set[str] = set()
        told: dict[str, None] = {}

        def is_bad(context: Object) -> bool:
            options = context.get("seLinuxOptions")
            if options is None:
                return False
            bad_type = str(options.get("type", ""))
            bad = bad_type not in allowed
            if bad:
                types.add(bad_type)
            for name in ("user", "role"):
                if options.get(name):
                    told[f"{name} may not be set"] = None
                    bad = True
            return bad

        pod_is_bad = is_bad(pod.context())
        names = names_where(pod, lambda item: is_bad(context_of(item)))
        if not (pod_is_bad or names):
            return None
        data = [f"{plural(len(types), 'type')} {quote_names(sorted(types))}"] if types else []
        data += sorted(told, reverse=True)
        return Violation(
            "seLinuxOptions",
            f"{setters(pod_is_bad, names)} set forbidden securityContext.seLinuxOptions: "
            + "; ".join(data),
        )

    return check


def seccomp_annotations(pod: PodView) -> Violation | None:
    annotations = pod.annotations()
    keys = [_SECCOMP_POD, *(_SECCOMP_CONTAINER + name for name in names_where(pod, _always))]
    bad = {
        f"{name}={go_quote(annotations[name])}"
        for name in keys
        if name in annotations
        and annotations[name] not in ("runtime/default", "docker/default")
        and not annotations[name].startswith("localhost/")
    }
    if not bad:
        return None
    return Violation(
        "seccompProfile",
        f"forbidden {plural(len(bad), 'annotation')} {', '.join(sorted(bad))}",
    )


def _always(container: Object) -> bool:
    return True


def bad_seccomp_setters(pod: PodView) -> Violation | None:
    """Return the violation of profiles that are set to a forbidden type."""
    values: set[str] = set()

    def is_bad(context: Object) -> bool:
        found = profile_type(context, "seccompProfile")
        if found is None or found in _PROFILES:
            return False
        values.add(found)
        return True

    pod_is_bad = is_bad(pod.context())
    names = names_where(pod, lambda item: is_bad(context_of(item)))
    if not (pod_is_bad or names):
        return None
    return Violation(
        "seccompProfile",
        f"{setters(pod_is_bad, names)} must not set securityContext.seccompProfile.type to "
        f"{quote_names(sorted(values))}",
    )


def sysctls(allowed: frozenset[str]) -> PodCheck:
    def check(pod: PodView) -> Violation | None:
        names = [str(item.get("name", "")) for item in pod.context().get("sysctls") or ()]
        bad = [name for name in names if name not in allowed]
        return Violation("forbidden sysctls", ", ".join(bad)) if bad else None

    return check


def windows_host_process(pod: PodView) -> Violation | None:
    def is_bad(context: Object) -> bool:
        return (context.get("windowsOptions") or {}).get("hostProcess") is True

    pod_is_bad = is_bad(pod.context())
    names = names_where(pod, lambda item: is_bad(context_of(item)))
    if not (pod_is_bad or names):
        return None
    return Violation(
        "hostProcess",
        f"{setters(pod_is_bad, names)} must not set "
        "securityContext.windowsOptions.hostProcess=true",
    )
