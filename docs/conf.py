"""How Sphinx builds the site from this folder: ``scripts/site``. The work is in ``docsite/``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import instar

project = "instar"
author = "The instar authors"
project_copyright = "The instar authors, Apache-2.0"
release = version = instar.__version__

extensions = ["myst_parser", "sphinx_copybutton", "sphinx_design", "docsite.extension"]
exclude_patterns = ["_static", "pictures"]
nitpicky = True
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = "instar"
html_static_path = ["_static"]
html_css_files = ["instar.css"]
html_show_sphinx = False
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_theme_options = {
    "source_repository": "https://github.com/instar-dev/instar",
    "source_branch": "main",
    "source_directory": "docs/",
    # The colours of pictures/instar.svg.
    "light_css_variables": {
        "color-brand-primary": "#1f6b52",
        "color-brand-content": "#1f6b52",
        "color-brand-visited": "#46606e",
        "color-api-name": "#1f6b52",
        "color-api-pre-name": "#46606e",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7fc8ad",
        "color-brand-content": "#7fc8ad",
        "color-brand-visited": "#a9bcc6",
        "color-api-name": "#7fc8ad",
        "color-api-pre-name": "#a9bcc6",
    },
}
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
