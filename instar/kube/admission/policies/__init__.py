"""Admission policies: compiles stored policies into programs and evaluates them on requests.

Pure: objects, parameters and authorizer decisions are passed in by
``server/registry/admission/policies``.
"""
