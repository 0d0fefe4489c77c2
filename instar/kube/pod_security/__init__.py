"""Pod Security Standards: levels, versions, namespace labels and the checks of each level. Pure.

The PodSecurity admission plugin calls ``labels.py`` for the policy of a namespace and
``evaluation.py`` for the violations of a pod spec.
"""
