"""Admission policies: from a stored policy to a program, and from a request to what it decides.

Pure: objects, parameters and answers of the authorizer come in as values. Knows neither the store,
HTTP, nor which policies there are.
"""
