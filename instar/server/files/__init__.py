"""Files of a server: its certificates, configurations, kubeconfigs, and a folder for its time."""
