"""Rules of the default RBAC roles, as compact data; ``defaults.py`` expands them to objects.

A line is ``verbs | groups | resources`` or ``verbs | paths``; words are separated by spaces, and
``core`` stands for the group without a name.
"""

from __future__ import annotations

_READ = "get list watch"
_WRITE = "create delete deletecollection patch update"
_ALL = f"{_READ} {_WRITE}"
_HEALTH = "/healthz /livez /readyz /version /version/"
_PROXIES = "pods/attach pods/exec pods/portforward pods/proxy"
_SETS = "daemonsets deployments replicasets statefulsets"
_OLD_SETS = "daemonsets deployments ingresses networkpolicies replicasets"
_CLAIMS = "resourceclaims resourceclaimtemplates"

_EDIT = (
    f"{_READ} | core | {_PROXIES} secrets services/proxy",
    "impersonate | core | serviceaccounts",
    f"{_WRITE} | core | pods {_PROXIES}",
    "create | core | pods/eviction",
    f"{_WRITE} | core | configmaps events persistentvolumeclaims replicationcontrollers "
    "replicationcontrollers/scale secrets serviceaccounts services services/proxy",
    "create | core | serviceaccounts/token",
    f"{_WRITE} | apps | {_SETS} deployments/rollback deployments/scale replicasets/scale "
    "statefulsets/scale",
    f"{_WRITE} | autoscaling | horizontalpodautoscalers",
    f"{_WRITE} | batch | cronjobs jobs",
    f"{_WRITE} | extensions | {_OLD_SETS} deployments/rollback deployments/scale "
    "replicasets/scale replicationcontrollers/scale",
    f"{_WRITE} | policy | poddisruptionbudgets",
    f"{_WRITE} | networking.k8s.io | ingresses networkpolicies",
    f"{_ALL} | coordination.k8s.io | leases",
    f"{_WRITE} | events.k8s.io | events",
    f"{_WRITE} | resource.k8s.io | {_CLAIMS}",
)
_VIEW = (
    f"{_READ} | core | configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status "
    "pods replicationcontrollers replicationcontrollers/scale serviceaccounts services "
    "services/status",
    f"{_READ} | core | bindings events limitranges namespaces/status pods/log pods/status "
    "replicationcontrollers/status resourcequotas resourcequotas/status",
    f"{_READ} | core | namespaces",
    f"{_READ} | discovery.k8s.io | endpointslices",
    f"{_READ} | apps | controllerrevisions {_SETS} daemonsets/status deployments/scale "
    "deployments/status replicasets/scale replicasets/status statefulsets/scale "
    "statefulsets/status",
    f"{_READ} | autoscaling | horizontalpodautoscalers horizontalpodautoscalers/status",
    f"{_READ} | batch | cronjobs cronjobs/status jobs jobs/status",
    f"{_READ} | extensions | {_OLD_SETS} daemonsets/status deployments/scale deployments/status "
    "ingresses/status replicasets/scale replicasets/status replicationcontrollers/scale",
    f"{_READ} | policy | poddisruptionbudgets poddisruptionbudgets/status",
    f"{_READ} | networking.k8s.io | ingresses ingresses/status networkpolicies",
    f"{_READ} | events.k8s.io | events",
    f"{_READ} | resource.k8s.io | {_CLAIMS} resourceclaims/status",
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
        f"{_ALL} | rbac.authorization.k8s.io | rolebindings roles",
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
        f"{_READ} | core | configmaps | extension-apiserver-authentication",
    ),
}
BINDINGS: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {
    ("kube-system", "system::extension-apiserver-authentication-reader"): (
        "extension-apiserver-authentication-reader",
        ("User system:kube-controller-manager", "User system:kube-scheduler"),
    ),
}
