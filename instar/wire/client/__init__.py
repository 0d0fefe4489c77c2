"""Kubernetes API client of the tools: kubeconfigs, credentials, requests, discovery."""
