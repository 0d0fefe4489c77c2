"""Python models of custom resources: from schemas to source text, from classes to schemas.

``shapes.py`` is what both ways meet in. Pure but for the import of somebody's module, which the
command line does: no files, no cluster, and no library of models is imported from here.
"""
