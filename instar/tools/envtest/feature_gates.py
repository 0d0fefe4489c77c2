"""Feature gates of kube-apiserver 1.36: which there are, and what is wrong with a value. Pure.

``cli/serving/kube_apiserver.py`` checks ``--feature-gates`` with it before it starts a server. No
gate changes how this server works: known ones are accepted without effect.
"""

from __future__ import annotations

from collections.abc import Iterable

_SETTABLE = """
    APIResponseCompression APIServerIdentity APIServingWithRoutine AllAlpha AllBeta
    AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
    AllowParsingUserUIDFromCertAuth AllowServiceExternalIPs AllowUnsafeMalformedObjectDeletion
    AuthorizePodWebsocketUpgradeCreatePermission CBORServingAndStorage
    CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
    CRIListStreaming CSIVolumeHealth ChangeContainerStatusOnKubeletRestart
    ClearingNominatedNodeNameAfterBinding CloudControllerManagerWatchBasedRoutesReconciliation
    CloudControllerManagerWebhook ClusterTrustBundle ClusterTrustBundleProjection ComponentFlagz
    ComponentStatusz ConcurrentWatchObjectDecode ConstrainedImpersonation ContainerCheckpoint
    ContainerRestartRules ContainerStopSignals ContextualLogging
    ControllerManagerReleaseLeaderElectionLockOnExit CoordinatedLeaderElection
    CrossNamespaceVolumeDataSource CustomCPUCFSQuotaPeriod DRAConsumableCapacity
    DRADeviceBindingConditions DRADeviceTaintRules DRADeviceTaints DRAExtendedResource
    DRAListTypeAttributes DRANodeAllocatableResources DRAPartitionableDevices DRAPrioritizedList
    DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization
    DRAResourcePoolStatus DRASchedulerFilterTimeout DRAWorkloadResourceClaims
    DeclarativeValidationBeta DeclarativeValidationTakeover
    DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency
    DisableCPUQuotaWithExclusiveCPUs EnvFiles EventedPLEG ExtendWebSocketsToKubelet
    GangScheduling GenericWorkload GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority
    HPAConfigurableTolerance HPAScaleToZero HostnameOverride ImageVolumeWithDigest
    InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingExclusiveCPUs
    InPlacePodVerticalScalingExclusiveMemory InPlacePodVerticalScalingInitContainers KMSv1
    KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletInUserNamespace
    KubeletPodResourcesListUseActivePods KubeletRegistrationGetOnExistsOnly
    KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
    LocalStorageCapacityIsolationFSQuotaMonitoring LoggingAlphaOptions LoggingBetaOptions
    ManifestBasedAdmissionControlConfig MatchLabelKeysInPodTopologySpread
    MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MemoryQoS
    MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs
    MutableSchedulingDirectivesForSuspendedJobs MutatingAdmissionPolicy NativeHistograms
    NodeDeclaredFeatures NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching
    PLEGOnDemandRelist PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI
    PodCertificateRequest PodDeletionCost PodLevelResourceManagers PodLevelResources
    PodLogsQuerySplitStreams PodReadyToStartContainersCondition PodTopologyLabelsAdmission
    PodsAPI PortForwardWebsockets PreventStaticPodAPIReferences QOSReserved
    ReduceDefaultCrashLoopBackOffDecay RelaxedServiceNameValidation ReloadKubeletClientCAFile
    ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
    ResourceHealthStatusMessage RestartAllContainersOnContainerExits
    RotateKubeletServerCertificate RuntimeClassInImageCriApi SELinuxMount SchedulerAsyncAPICalls
    SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction
    ServiceCIDRStatusFieldWiping ShardedListAndWatch SizeBasedListCostEstimate
    StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
    StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
    StatefulSetSemanticRevisionComparison StorageCapacityScoring StorageNamespaceIndex
    StorageVersionAPI StorageVersionHash StorageVersionMigrator StrictIPCIDRValidation
    StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics TaintTolerationComparisonOperators
    TokenRequestServiceAccountUIDValidation TopologyAwareWorkloadScheduling
    TopologyManagerPolicyAlphaOptions TopologyManagerPolicyBetaOptions
    TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UnknownVersionInteroperabilityProxy UserNamespacesHostNetworkSupport VolumeLimitScaling
    WatchCacheInitializationPostStartHook WatchList WindowsCPUAndMemoryAffinity
    WindowsGracefulNodeShutdown WindowsHostNetwork WorkloadAwarePreemption WorkloadWithJob
"""
_LOCKED_ON = """
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
_LOCKED = {
    **dict.fromkeys(_LOCKED_ON.split(), True),
    **dict.fromkeys(_LOCKED_OFF.split(), False),
}
GATES = frozenset(_SETTABLE.split()) | _LOCKED.keys()
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class BadFeatureGate(ValueError):
    """``str()`` is what kube-apiserver says."""


def check_feature_gates(values: Iterable[str]) -> None:
    """``values``: those of the flag, ``Name=true`` with commas. Raises ``BadFeatureGate``."""
    for text in (part.strip() for value in values for part in value.split(",")):
        if text:
            _check(text)


def _check(text: str) -> None:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise BadFeatureGate(f"missing bool value for {name}")
    if value not in _BOOLEANS:
        reason = f'strconv.ParseBool: parsing "{value}": invalid syntax'
        raise BadFeatureGate(f"invalid value of {name}={value}, err: {reason}")
    if name not in GATES:
        raise BadFeatureGate(f"unrecognized feature gate: {name}")
    wanted = _BOOLEANS[value]
    if _LOCKED.get(name, wanted) != wanted:
        given, locked = (str(each).lower() for each in (wanted, _LOCKED[name]))
        raise BadFeatureGate(
            f"cannot set feature gate {name} to {given}, feature is locked to {locked}"
        )
