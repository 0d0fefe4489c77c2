"""Descriptions of the fields of volumes, written for this project.

Called by ``builtin.py``, beside ``field_descriptions.py``, whose form the table has.
"""

from __future__ import annotations

from collections.abc import Mapping

_FS_TYPE = "File system of the volume; ext4 where it is empty."
_READ_ONLY = "Whether the volume is mounted read-only."
_SECRET_REF = "Secret with the credentials."
_OPTIONAL = "Whether it may be missing."
_ITEMS = "Keys that become files, and their paths; all keys if it is empty."
_MODE = "Mode of the files: 0 to 0777, in JSON as a decimal number."
_OBJECT_NAME = "Name of the referenced object."
_ADVICE = "Secret that the driver gets when it "
_COMMON = {"fsType": _FS_TYPE, "readOnly": _READ_ONLY}
_KEYED = {"items": _ITEMS, "name": _OBJECT_NAME, "optional": _OPTIONAL}

_ISCSI = _COMMON | {
    "chapAuthDiscovery": "Whether CHAP is used for discovery.",
    "chapAuthSession": "Whether CHAP is used for the session.",
    "initiatorName": "Name of the initiator.",
    "iqn": "Qualified name of the target.",
    "iscsiInterface": "Name of the interface; default is the default.",
    "lun": "Number of the target's unit.",
    "portals": "Further portals of the target, as address or address:port.",
    "secretRef": _SECRET_REF,
    "targetPortal": "Portal of the target, as address or address:port.",
}
_CEPHFS = {
    "monitors": "Addresses of the monitors.",
    "path": "Path in the file system that is mounted; / by default.",
    "readOnly": _READ_ONLY,
    "secretFile": "File with the credentials.",
    "secretRef": _SECRET_REF,
    "user": "Name of the user; admin by default.",
}
_CINDER = _COMMON | {"secretRef": _SECRET_REF, "volumeID": "Id of the volume."}
_FLEX = _COMMON | {
    "driver": "Name of the driver.",
    "options": "Options for the driver.",
    "secretRef": _SECRET_REF,
}
_GLUSTER = {
    "endpoints": "Name of the Endpoints with the servers.",
    "path": "Name of the volume on the servers.",
    "readOnly": _READ_ONLY,
}
_RBD = _COMMON | {
    "image": "Name of the image.",
    "keyring": "File with the keys; /etc/ceph/keyring by default.",
    "monitors": "Addresses of the monitors.",
    "pool": "Name of the pool; rbd by default.",
    "secretRef": _SECRET_REF,
    "user": "Name of the user; admin by default.",
}
_SCALE_IO = _COMMON | {
    "gateway": "Address of the gateway.",
    "protectionDomain": "Name of the protection domain.",
    "secretRef": _SECRET_REF,
    "sslEnabled": "Whether the gateway is reached over TLS.",
    "storageMode": "ThickProvisioned or ThinProvisioned.",
    "storagePool": "Name of the storage pool.",
    "system": "Name of the storage system.",
    "volumeName": "Name of the volume.",
}
_STORAGE_OS = _COMMON | {
    "secretRef": _SECRET_REF,
    "volumeName": "Name of the volume.",
    "volumeNamespace": "Namespace of the volume in StorageOS.",
}
_AZURE_FILE = {
    "readOnly": _READ_ONLY,
    "secretName": "Name of the secret with the account and its key.",
    "shareName": "Name of the share.",
}
_PARTITION = "Number of the partition; 0 or absent for the whole disk."
_OLD_DRIVERS: Mapping[str, Mapping[str, str]] = {
    "AWSElasticBlockStoreVolumeSource": _COMMON
    | {"partition": _PARTITION, "volumeID": "Id of the volume."},
    "AzureDiskVolumeSource": _COMMON
    | {
        "cachingMode": "None, ReadOnly or ReadWrite.",
        "diskName": "Name of the disk.",
        "diskURI": "URI of the disk.",
        "kind": "Shared, Dedicated or Managed.",
    },
    "AzureFileVolumeSource": _AZURE_FILE,
    "AzureFilePersistentVolumeSource": _AZURE_FILE
    | {"secretNamespace": "Namespace of the secret; by default that of the claim."},
    "CephFSVolumeSource": _CEPHFS,
    "CephFSPersistentVolumeSource": _CEPHFS,
    "CinderVolumeSource": _CINDER,
    "CinderPersistentVolumeSource": _CINDER,
    "FlexVolumeSource": _FLEX,
    "FlexPersistentVolumeSource": _FLEX,
    "FlockerVolumeSource": {
        "datasetName": "Name of the dataset.",
        "datasetUUID": "UUID of the dataset.",
    },
    "GCEPersistentDiskVolumeSource": _COMMON
    | {"partition": _PARTITION, "pdName": "Name of the disk."},
    "GitRepoVolumeSource": {
        "directory": "Directory that the repository is cloned into.",
        "repository": "URL of the repository.",
        "revision": "Commit that is checked out.",
    },
    "GlusterfsVolumeSource": _GLUSTER,
    "GlusterfsPersistentVolumeSource": _GLUSTER
    | {"endpointsNamespace": "Namespace of the Endpoints; by default that of the claim."},
    "PhotonPersistentDiskVolumeSource": {"fsType": _FS_TYPE, "pdID": "Id of the disk."},
    "PortworxVolumeSource": _COMMON | {"volumeID": "Id of the volume."},
    "QuobyteVolumeSource": {
        "group": "Group of the mounted files.",
        "readOnly": _READ_ONLY,
        "registry": "Addresses of the registry, with commas.",
        "tenant": "Tenant that the volume belongs to.",
        "user": "User of the mounted files.",
        "volume": "Name of the volume.",
    },
    "RBDVolumeSource": _RBD,
    "RBDPersistentVolumeSource": _RBD,
    "ScaleIOVolumeSource": _SCALE_IO,
    "ScaleIOPersistentVolumeSource": _SCALE_IO,
    "StorageOSVolumeSource": _STORAGE_OS,
    "StorageOSPersistentVolumeSource": _STORAGE_OS,
    "VsphereVirtualDiskVolumeSource": {
        "fsType": _FS_TYPE,
        "storagePolicyID": "Id of the storage policy.",
        "storagePolicyName": "Name of the storage policy.",
        "volumePath": "Path of the disk.",
    },
}

VOLUME_FIELDS: Mapping[str, Mapping[str, str]] = {
    **_OLD_DRIVERS,
    "CSIVolumeSource": _COMMON
    | {
        "driver": "Name of the CSI driver.",
        "nodePublishSecretRef": _ADVICE + "mounts the volume.",
        "volumeAttributes": "Settings for the driver.",
    },
    "CSIPersistentVolumeSource": _COMMON
    | {
        "controllerExpandSecretRef": _ADVICE + "makes the volume larger.",
        "controllerPublishSecretRef": _ADVICE + "attaches the volume to a node.",
        "driver": "Name of the CSI driver.",
        "nodeExpandSecretRef": _ADVICE + "makes the file system larger.",
        "nodePublishSecretRef": _ADVICE + "mounts the volume into a pod.",
        "nodeStageSecretRef": _ADVICE + "mounts the volume on a node.",
        "volumeAttributes": "Settings for the driver.",
        "volumeHandle": "Id of the volume in the driver.",
    },
    "ConfigMapVolumeSource": _KEYED | {"defaultMode": _MODE},
    "ConfigMapProjection": _KEYED,
    "SecretProjection": _KEYED,
    "SecretVolumeSource": {
        "defaultMode": _MODE,
        "items": _ITEMS,
        "optional": _OPTIONAL,
        "secretName": "Name of the secret.",
    },
    "DownwardAPIVolumeSource": {"defaultMode": _MODE, "items": "The files."},
    "DownwardAPIProjection": {"items": "The files."},
    "DownwardAPIVolumeFile": {
        "fieldRef": "A field of the pod that becomes the content.",
        "mode": _MODE,
        "path": "Path of the file in the volume.",
        "resourceFieldRef": "A request or limit that becomes the content.",
    },
    "EmptyDirVolumeSource": {
        "medium": "Empty for the node's disk, or Memory, or a size of huge pages.",
        "sizeLimit": "Size at which the pod is evicted.",
    },
    "EphemeralVolumeSource": {"volumeClaimTemplate": "Template of the claim made for the pod."},
    "PersistentVolumeClaimTemplate": {
        "metadata": "Labels and annotations of the claim.",
        "spec": "Spec of the claim.",
    },
    "FCVolumeSource": _COMMON
    | {
        "lun": "Number of the target's unit.",
        "targetWWNs": "World wide names of the target.",
        "wwids": "World wide ids of the volume; instead of lun and targetWWNs.",
    },
    "HostPathVolumeSource": {
        "path": "Path on the node.",
        "type": "What has to be at the path; empty for no check.",
    },
    "ImageVolumeSource": {
        "pullPolicy": "Always, Never or IfNotPresent.",
        "reference": "Name of the image.",
    },
    "ISCSIVolumeSource": _ISCSI,
    "ISCSIPersistentVolumeSource": _ISCSI,
    "KeyToPath": {
        "key": "The key.",
        "mode": _MODE,
        "path": "Path of the file in the volume.",
    },
    "LocalVolumeSource": {"fsType": _FS_TYPE, "path": "Path of a directory or a device."},
    "NFSVolumeSource": {
        "path": "Path that the server exports.",
        "readOnly": _READ_ONLY,
        "server": "Host name or address of the server.",
    },
    "PersistentVolumeClaimVolumeSource": {
        "claimName": "Name of the claim in the namespace of the pod.",
        "readOnly": _READ_ONLY,
    },
    "ProjectedVolumeSource": {
        "defaultMode": _MODE,
        "sources": "What is put together in the volume.",
    },
    "VolumeProjection": {
        "clusterTrustBundle": "Certificates of ClusterTrustBundles.",
        "configMap": "Keys of a ConfigMap.",
        "downwardAPI": "Fields of the pod.",
        "podCertificate": "A certificate for the pod, renewed by the kubelet.",
        "secret": "Keys of a secret.",
        "serviceAccountToken": "A token of the pod's ServiceAccount.",
    },
    "ClusterTrustBundleProjection": {
        "labelSelector": "Labels of the bundles; together with signerName.",
        "name": "Name of one bundle; without signerName and labelSelector.",
        "optional": _OPTIONAL,
        "path": "Path of the file in the volume.",
        "signerName": "Signer of the bundles.",
    },
    "PodCertificateProjection": {
        "certificateChainPath": "Path of the file with the certificates.",
        "credentialBundlePath": "Path of the file with the key and the certificates.",
        "keyPath": "Path of the file with the key.",
        "keyType": "Type of the key, such as ED25519 or ECDSAP256.",
        "maxExpirationSeconds": "Longest lifetime of the certificate.",
        "signerName": "Signer of the certificate.",
        "userAnnotations": "Further values for the signer.",
    },
    "ServiceAccountTokenProjection": {
        "audience": "Recipient of the token; by default the API server.",
        "expirationSeconds": "Lifetime of the token; at least 10 minutes.",
        "path": "Path of the file in the volume.",
    },
    "VolumeDevice": {
        "devicePath": "Path of the device in the container.",
        "name": "Name of a claim in the pod's volumes.",
    },
    "VolumeMount": {
        "mountPropagation": "Whether mounts reach the node, or come from it.",
        "recursiveReadOnly": "Whether mounts below it are read-only, too.",
        "subPathExpr": "Path in the volume, with $(NAME) for variables of the container.",
    },
    "VolumeNodeAffinity": {"required": "Nodes that can use the volume."},
    "VolumeResourceRequirements": {
        "limits": "Largest size.",
        "requests": "Smallest size.",
    },
}
"""By type and field."""
