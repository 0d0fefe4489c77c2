"""A client of the Kubernetes API, for the tools: kubeconfigs, credentials, requests, discovery."""
