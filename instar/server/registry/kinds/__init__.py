"""Built-in kinds: defaults, validation hooks and table columns that are special to each.

``builtin_resources.py`` builds what is served; the verbs call the strategies.
"""
