"""How the site is built from these pages, the docstrings and the gallery: ``make docs``."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

from frhsic import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

project = "frhsic"
author = "The frhsic developers"
copyright = "The frhsic developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "recipe_output",
    "repository_links",
    "table_cards",
]

# Pages
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "extensions", "README.md", "**/README.md"]
myst_heading_anchors = 4
myst_enable_extensions = ["deflist", "colon_fence", "dollarmath"]

# Reference: the names that a package lists in its __all__, a page each
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
templates_path = ["templates"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_param = False  # one entry for parameters that are described together
napoleon_use_rtype = False
napoleon_use_ivar = True
strip_signature_backslash = True  # else choice_ is printed as choice

# Gallery: every script is run when the site is built, and shown in the order in which it teaches
GALLERY = (
    "audit_of_scores",
    "production",
    "notebook",
    "grid_search",
    "equal_opportunity",
    "among_equals",
    "shared_table",
    "monitoring",
    "more_rows_than_memory",
)
sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": ExplicitOrder([f"plot_{name}.py" for name in GALLERY]),
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
    "matplotlib_animations": False,
}

# Pages as they are shown
html_theme = "furo"
html_title = "frhsic"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["site.css"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
