"""Pods and everything that is made of a pod template."""
