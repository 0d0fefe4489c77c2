"""Default RBAC roles for users, as compact data; ``defaults.py`` makes objects of them.

``rule_lines.py`` explains the lines. Roles of Kubernetes' components are in ``component_rules.py``
and ``controller_rules.py``.
"""

from __future__ import annotations

_HEALTH = "/healthz /livez /readyz /version /version/"
_PROXIES = "pods/attach pods/exec pods/portforward pods/proxy"
_SETS = "daemonsets deployments replicasets statefulsets"
_OLD_SETS = "daemonsets deployments ingresses networkpolicies replicasets"
_CLAIMS = "resourceclaims resourceclaimtemplates"

_EDIT = (
    f"read | core | {_PROXIES} secrets services/proxy",
    "impersonate | core | serviceaccounts",
    f"write | core | pods {_PROXIES}",
    "create | core | pods/eviction",
    "write | core | configmaps persistentvolumeclaims replicationcontrollers "
    "replicationcontrollers/scale secrets serviceaccounts services services/proxy",
    "create | core | serviceaccounts/token",
    "write | core events.k8s.io | events",
    f"write | apps | {_SETS} deployments/rollback deployments/scale replicasets/scale "
    "statefulsets/scale",
    "write | autoscaling | horizontalpodautoscalers",
    "write | batch | cronjobs jobs",
    f"write | extensions | {_OLD_SETS} deployments/rollback deployments/scale "
    "replicasets/scale replicationcontrollers/scale",
    "write | policy | poddisruptionbudgets",
    "write | networking.k8s.io | ingresses networkpolicies",
    "read write | coordination.k8s.io | leases",
    f"write | resource.k8s.io | {_CLAIMS}",
)
_VIEW = (
    "read | core | configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status "
    "pods replicationcontrollers replicationcontrollers/scale serviceaccounts services "
    "services/status",
    "read | core | bindings limitranges namespaces/status pods/log pods/status "
    "replicationcontrollers/status resourcequotas resourcequotas/status",
    "read | core | namespaces",
    "read | core events.k8s.io | events",
    "read | discovery.k8s.io | endpointslices",
    f"read | apps | controllerrevisions {_SETS} daemonsets/status deployments/scale "
    "deployments/status replicasets/scale replicasets/status statefulsets/scale "
    "statefulsets/status",
    "read | autoscaling | horizontalpodautoscalers horizontalpodautoscalers/status",
    "read | batch | cronjobs cronjobs/status jobs jobs/status",
    f"read | extensions | {_OLD_SETS} daemonsets/status deployments/scale deployments/status "
    "ingresses/status replicasets/scale replicasets/status replicationcontrollers/scale",
    "read | policy | poddisruptionbudgets poddisruptionbudgets/status",
    "read | networking.k8s.io | ingresses ingresses/status networkpolicies",
    f"read | resource.k8s.io | {_CLAIMS} resourceclaims/status",
)
_ISSUER = "/.well-known/openid-configuration /openid/v1/jwks"

CLUSTER_ROLES: dict[str, tuple[str, ...]] = {
    "cluster-admin": ("* | * | *", "* | *"),
    "system:discovery": (
        f"get | /api /api/* /apis /apis/* {_HEALTH} /openapi /openapi/*",
    ),
    "system:public-info-viewer": (f"get | {_HEALTH}",),
    "system:basic-user": (
        "create | authorization.k8s.io | selfsubjectaccessreviews selfsubjectrulesreviews",
        "create | authentication.k8s.io | selfsubjectreviews",
    ),
    "system:monitoring": (
        "get | /flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz "
        "/readyz/* /statusz",
        "get | core | nodes/metrics",
    ),
    "system:auth-delegator": (
        "create | authentication.k8s.io | tokenreviews",
        "create | authorization.k8s.io | subjectaccessreviews",
    ),
    "system:service-account-issuer-discovery": (
        "get | " + " ".join(f"{path} {path}/" for path in _ISSUER.split()),
    ),
    "system:aggregate-to-admin": (
        "create | authorization.k8s.io | localsubjectaccessreviews",
        "read write | rbac.authorization.k8s.io | rolebindings roles",
    ),
    "system:aggregate-to-edit": _EDIT,
    "system:aggregate-to-view": _VIEW,
    "system:controller:clusterrole-aggregation-controller": (
        "escalate get list patch update watch | rbac.authorization.k8s.io | clusterroles",
    ),
}  # fmt: skip
AGGREGATED = ("admin", "edit", "view")
FEEDS = {
    "system:aggregate-to-admin": "admin",
    "system:aggregate-to-edit": "edit",
    "system:aggregate-to-view": "view",
    "edit": "admin",
    "view": "edit",
}
"""Which role's rules are aggregated into which."""
CLUSTER_BINDINGS: dict[str, tuple[str, ...]] = {
    "cluster-admin": ("Group system:masters",),
    "system:monitoring": ("Group system:monitoring",),
    "system:discovery": ("Group system:authenticated",),
    "system:basic-user": ("Group system:authenticated",),
    "system:public-info-viewer": (
        "Group system:authenticated", "Group system:unauthenticated",
    ),
    "system:service-account-issuer-discovery": ("Group system:serviceaccounts",),
    "system:controller:clusterrole-aggregation-controller": (
        "ServiceAccount kube-system/clusterrole-aggregation-controller",
    ),
}  # fmt: skip
"""Bindings, each of the role with the same name."""
ROLES: dict[tuple[str, str], tuple[str, ...]] = {
    ("kube-system", "extension-apiserver-authentication-reader"): (
        "read | core | configmaps | extension-apiserver-authentication",
    ),
}
BINDINGS: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {
    ("kube-system", "system::extension-apiserver-authentication-reader"): (
        "extension-apiserver-authentication-reader",
        ("User system:kube-controller-manager", "User system:kube-scheduler"),
    ),
}
