"""The tools around an API version's life, one package each.

Every tool is a library first; ``instar.cli`` makes a command of it and the console a page.
"""
