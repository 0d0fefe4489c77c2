"""Files of a server: certificates, configuration files, kubeconfigs, temporary folders."""
