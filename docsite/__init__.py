"""What the site is built with, beside the pages of ``docs/``: the reference, made from the code
while Sphinx reads its pages, and links that are true on GitHub and on the site.

Each module of the reference is a function without arguments that returns Markdown. None of them
knows Sphinx; ``extension.py`` alone does.
"""
