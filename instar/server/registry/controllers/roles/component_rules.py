"""Default roles of Kubernetes' other components: nodes, scheduler, controller manager, approvers.

``defaults.py`` makes objects of them; ``rule_lines.py`` explains the text. This server uses none of
these roles itself: they let the real components run on it with the rights that kubeadm gives them.
"""

from __future__ import annotations

COMPONENT_ROLES = """
system:certificates.k8s.io:certificatesigningrequests:nodeclient
    create | certificates.k8s.io | certificatesigningrequests/nodeclient
system:certificates.k8s.io:certificatesigningrequests:selfnodeclient
    create | certificates.k8s.io | certificatesigningrequests/selfnodeclient
system:certificates.k8s.io:kube-apiserver-client-approver
    approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client
system:certificates.k8s.io:kube-apiserver-client-kubelet-approver
    approve | certificates.k8s.io | signers | kubernetes.io/kube-apiserver-client-kubelet
system:certificates.k8s.io:kubelet-serving-approver
    approve | certificates.k8s.io | signers | kubernetes.io/kubelet-serving
system:certificates.k8s.io:legacy-unknown-approver
    approve | certificates.k8s.io | signers | kubernetes.io/legacy-unknown
system:heapster
    read | core | events namespaces nodes pods
    read | extensions | deployments
system:kube-aggregator
    read | core | endpoints services
system:kube-controller-manager
    events
    create | coordination.k8s.io | leases
    get update | coordination.k8s.io | leases | kube-controller-manager
    create | core | secrets serviceaccounts
    delete | core | secrets
    get | core | configmaps namespaces secrets serviceaccounts
    update | core | secrets serviceaccounts
    create | authentication.k8s.io | tokenreviews
    create | authorization.k8s.io | subjectaccessreviews
    list watch | * | *
    create | core | serviceaccounts/token
system:kube-dns
    list watch | core | endpoints services
system:kube-scheduler
    events
    create | coordination.k8s.io | leases
    read update | coordination.k8s.io | leases | kube-scheduler
    read write | coordination.k8s.io | leasecandidates
    read | core | nodes
    read delete | core | pods
    create | core | bindings pods/binding
    patch update | core | pods/status
    read | core | replicationcontrollers services
    read | apps extensions | replicasets
    read | apps | statefulsets
    read | policy | poddisruptionbudgets
    read | core | persistentvolumeclaims persistentvolumes
    create | authentication.k8s.io | tokenreviews
    create | authorization.k8s.io | subjectaccessreviews
    read | storage.k8s.io | csinodes
    read | storage.k8s.io | volumeattachments
    read | core | namespaces
    read | storage.k8s.io | csidrivers
    read | storage.k8s.io | csistoragecapacities
    read | resource.k8s.io | deviceclasses
    read patch update | resource.k8s.io | resourceclaims
    read patch update | resource.k8s.io | resourceclaims/status
    update | core | pods/finalizers
    read | resource.k8s.io | resourceslices
    create delete | resource.k8s.io | resourceclaims
    patch update | resource.k8s.io | resourceclaims/binding
system:kubelet-api-admin
    read | core | nodes
    proxy | core | nodes
    * | core | nodes/log nodes/metrics nodes/proxy nodes/stats
    * | core | nodes/configz nodes/healthz nodes/pods
system:node
    create | authentication.k8s.io | tokenreviews
    create | authorization.k8s.io | localsubjectaccessreviews subjectaccessreviews
    read | core | services
    read create | core | nodes
    patch update | core | nodes/status
    patch update | core | nodes
    events
    read | core | pods
    create delete | core | pods
    patch update | core | pods/status
    create | core | pods/eviction
    read | core | configmaps secrets
    get | core | persistentvolumeclaims persistentvolumes
    get | core | endpoints
    read create | certificates.k8s.io | certificatesigningrequests
    create delete get patch update | coordination.k8s.io | leases
    get | storage.k8s.io | volumeattachments
    create | core | serviceaccounts/token
    get patch update | core | persistentvolumeclaims/status
    read | storage.k8s.io | csidrivers
    create delete get patch update | storage.k8s.io | csinodes
    read | node.k8s.io | runtimeclasses
    get | resource.k8s.io | resourceclaims
    deletecollection | resource.k8s.io | resourceslices
    get | core | serviceaccounts
system:node-bootstrapper
    read create | certificates.k8s.io | certificatesigningrequests
system:node-problem-detector
    get | core | nodes
    patch | core | nodes/status
    events
system:node-proxier
    list watch | core | endpoints services
    read | core | nodes
    events
    list watch | networking.k8s.io | servicecidrs
    list watch | discovery.k8s.io | endpointslices
system:persistent-volume-provisioner
    read create delete | core | persistentvolumes
    read update | core | persistentvolumeclaims
    read | storage.k8s.io | storageclasses
    watch | core | events
    events
system:volume-scheduler
    read patch update | core | persistentvolumes
    read | storage.k8s.io | storageclasses
    read patch update | core | persistentvolumeclaims
"""
COMPONENT_BINDINGS: dict[str, tuple[str, ...]] = {
    "system:kube-controller-manager": ("User system:kube-controller-manager",),
    "system:kube-dns": ("ServiceAccount kube-system/kube-dns",),
    "system:kube-scheduler": ("User system:kube-scheduler",),
    "system:node": (),
    "system:node-proxier": ("User system:kube-proxy",),
    "system:volume-scheduler": ("User system:kube-scheduler",),
}
"""ClusterRoleBindings, each of the role with the same name."""

NAMESPACED_ROLES = """
kube-public/system:controller:bootstrap-signer
    read | core | configmaps
    update | core | configmaps | cluster-info
    events
kube-system/system::leader-locking-kube-controller-manager
    read create update | coordination.k8s.io | leases
    read create update | coordination.k8s.io | leasecandidates
kube-system/system::leader-locking-kube-scheduler
    read create update | coordination.k8s.io | leases
    read create update | coordination.k8s.io | leasecandidates
kube-system/system:controller:bootstrap-signer
    read | core | secrets
kube-system/system:controller:cloud-provider
    read create | core | configmaps
kube-system/system:controller:token-cleaner
    read delete | core | secrets
    events
"""
NAMESPACED_BINDINGS: dict[str, tuple[str, ...]] = {
    "kube-public/system:controller:bootstrap-signer": (
        "ServiceAccount kube-system/bootstrap-signer",
    ),
    "kube-system/system::leader-locking-kube-controller-manager": (
        "User system:kube-controller-manager",
        "ServiceAccount kube-system/kube-controller-manager",
        "ServiceAccount kube-system/leader-election-controller",
    ),
    "kube-system/system::leader-locking-kube-scheduler": (
        "User system:kube-scheduler",
        "ServiceAccount kube-system/kube-scheduler",
    ),
    "kube-system/system:controller:bootstrap-signer": (
        "ServiceAccount kube-system/bootstrap-signer",
    ),
    "kube-system/system:controller:cloud-provider": ("ServiceAccount kube-system/cloud-provider",),
    "kube-system/system:controller:token-cleaner": ("ServiceAccount kube-system/token-cleaner",),
}
"""RoleBindings, each of the role with the same namespace and name."""
