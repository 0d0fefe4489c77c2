"""Feature gates of kube-apiserver 1.36: their defaults, and the error for a bad value. Pure.

``cli/serving/feature_gate_flags.py`` and ``cli/serving/kube_apiserver.py`` read ``--feature-gates``
with it, and log which gates have no effect in instar. Names and defaults are those of the metric
``kubernetes_feature_enabled``.
"""

from __future__ import annotations

from collections.abc import Iterable

_ENABLED_GATES = """
    APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth
    AllowServiceExternalIPs AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission
    CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
    ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC
    ComponentFlagz ComponentStatusz ConstrainedImpersonation ContainerCheckpoint
    ContainerRestartRules ContextualLogging CustomCPUCFSQuotaPeriod DRAConsumableCapacity
    DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices
    DRAPrioritizedList DRAResourceClaimDeviceStatus
    DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout
    DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas
    DetectCacheInconsistency DisableCPUQuotaWithExclusiveCPUs EnvFiles
    ExtendWebSocketsToKubelet GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority
    HPAConfigurableTolerance HostnameOverride InOrderInformersBatchProcess
    InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers
    KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
    KubeletPodResourcesListUseActivePods KubeletSeparateDiskGC
    KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
    LoggingBetaOptions MatchLabelKeysInPodTopologySpread
    MatchLabelKeysInPodTopologySpreadSelectorMerge MutablePodResourcesForSuspendedJobs
    MutableSchedulingDirectivesForSuspendedJobs MutatingAdmissionPolicy NodeDeclaredFeatures
    NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist
    PodDeletionCost PodLevelResources PodReadyToStartContainersCondition
    PodTopologyLabelsAdmission PortForwardWebsockets PreventStaticPodAPIReferences
    RelaxedServiceNameValidation ReloadKubeletClientCAFile
    ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
    ResourceHealthStatusMessage RestartAllContainersOnContainerExits
    RotateKubeletServerCertificate SchedulerAsyncPreemption SchedulerPopFromBackoffQ
    ServiceAccountNodeAudienceRestriction ServiceCIDRStatusFieldWiping
    SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet
    StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
    StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison
    StorageNamespaceIndex StorageVersionHash StrictIPCIDRValidation
    StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
    TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests
    UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy
    UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList
    WatchListClient WindowsGracefulNodeShutdown
"""
"""On by default."""
_DISABLED_GATES = """
    APIServingWithRoutine AllAlpha AllBeta AllowDNSOnlyNodeCSR
    AllowInsecureKubeletCertificateSigningRequests AllowUnsafeMalformedObjectDeletion
    CBORServingAndStorage CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth
    ChangeContainerStatusOnKubeletRestart ClientsAllowCBOR ClientsPreferCBOR
    CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
    ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode
    ContainerStopSignals ControllerManagerReleaseLeaderElectionLockOnExit
    CoordinatedLeaderElection CrossNamespaceVolumeDataSource DRADeviceTaintRules
    DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
    DRAWorkloadResourceClaims DeclarativeValidationTakeover EventedPLEG GangScheduling
    GenericWorkload HPAScaleToZero ImageVolumeWithDigest
    InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory KMSv1
    KubeletInUserNamespace KubeletRegistrationGetOnExistsOnly
    LocalStorageCapacityIsolationFSQuotaMonitoring LoggingAlphaOptions
    ManifestBasedAdmissionControlConfig MaxUnavailableStatefulSet MemoryQoS
    MutablePVNodeAffinity NativeHistograms PersistentVolumeClaimUnusedSinceTime
    PodAndContainerStatsFromCRI PodCertificateRequest PodLevelResourceManagers
    PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay
    RuntimeClassInImageCriApi SELinuxMount SchedulerAsyncAPICalls ShardedListAndWatch
    StorageCapacityScoring StorageVersionAPI StorageVersionMigrator
    TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling
    TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport VolumeLimitScaling
    WindowsCPUAndMemoryAffinity WindowsHostNetwork WorkloadAwarePreemption WorkloadWithJob
"""
_LOCKED_ON = """
    InOrderInformers
    APIServerTracing AggregatedDiscoveryRemoveBetaType AnonymousAuthConfigurableEndpoints
    AnyVolumeDataSource AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache
    CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets
    ConsistentListFromCache CustomResourceFieldSelectors DRAAdminAccess DeclarativeValidation
    DisableAllocatorDualWrite DisableNodeKubeProxyVersion DynamicResourceAllocation
    ExecProbeTimeout ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume
    InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy
    JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI
    KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing
    LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator
    MutableCSINodeAllocatableCount NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread
    NodeLogQuery NodeSwap OrderedNamespaceDeletion PodLifecycleSleepAction
    PodLifecycleSleepActionAllowZero PodObservedGenerationTracking PodSchedulingReadiness
    PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure
    RecursiveReadOnlyMounts RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation
    ResilientWatchCacheInitialization RetryGenerateName SELinuxChangePolicy
    SELinuxMountReadWriteOncePod SchedulerQueueingHints SeparateTaintEvictionController
    ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
    ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
    StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
    StructuredAuthenticationConfiguration SupplementalGroupsPolicy SystemdWatchdog
    TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass WinDSR WinOverlay
"""
_LOCKED_OFF = """
    AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
"""
_LOCKED_GATES = {
    **dict.fromkeys(_LOCKED_ON.split(), True),
    **dict.fromkeys(_LOCKED_OFF.split(), False),
}
_DEFAULTS = {
    **dict.fromkeys(_ENABLED_GATES.split(), True),
    **dict.fromkeys(_DISABLED_GATES.split(), False),
    **_LOCKED_GATES,
}
GATES = frozenset(_DEFAULTS)
_COMPONENT = "kube"
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class BadFeatureGate(ValueError):
    """An invalid feature gate; ``str()`` is the message of kube-apiserver."""


def changed_gates(values: Iterable[str]) -> dict[str, bool]:
    """Return the gates that differ from their defaults.

    ``values``: those of the flag, ``Name=true`` or ``kube:Name=true`` with commas. Raises
    ``BadFeatureGate``.
    """
    texts = (part.strip() for value in values for part in value.split(","))
    given = dict(_read_gate(text) for text in texts if text)
    return {name: value for name, value in given.items() if value != _DEFAULTS[name]}


def _read_gate(text: str) -> tuple[str, bool]:
    head, equals, value = (part.strip() for part in text.partition("="))
    component, colon, name = head.partition(":")
    if not colon:
        component, name = _COMPONENT, head
    if not equals:
        raise BadFeatureGate(f"missing bool value for {name}")
    if component != _COMPONENT:
        raise BadFeatureGate(f"component not registered: {component}")
    if value not in _BOOLEANS:
        reason = f'strconv.ParseBool: parsing "{value}": invalid syntax'
        raise BadFeatureGate(f"invalid value of {name}={value}, err: {reason}")
    if name not in GATES:
        raise BadFeatureGate(f"unrecognized feature gate: {name}")
    wanted = _BOOLEANS[value]
    if _LOCKED_GATES.get(name, wanted) != wanted:
        given, locked = (str(each).lower() for each in (wanted, _LOCKED_GATES[name]))
        raise BadFeatureGate(
            f"cannot set feature gate {name} to {given}, feature is locked to {locked}"
        )
    return name, wanted
