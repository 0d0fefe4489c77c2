"""The caller of webhooks: addresses, TLS, connections, HTTP, deadlines, Go's words for failures.

Knows neither what is asked nor whether the answer is any good: conversion asks today.
"""
