"""Fill the templates of the pages."""

from __future__ import annotations

from functools import cache

import jinja2

from frhsic_paper.claim import NOT_RUN, Finding, unwrapped
from frhsic_paper.table import Table

SIGNS = {"holds": "✓", "holds in part": "◐", "does not hold": "✗", "cannot be judged": "?"}

PLURAL = {"holds": "hold", "holds in part": "hold in part", "does not hold": "do not hold"}


def rendered(template: str, **content: object) -> str:
    """Return a template filled with its content."""
    return _environment().get_template(template).render(**content).rstrip() + "\n"


@cache
def _environment() -> jinja2.Environment:
    """Return the templates, which are compiled once."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("frhsic_paper", "."),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"markdown": Table.markdown, "unwrapped": unwrapped, "sign": SIGNS.__getitem__}
    environment.tests["not_run"] = _is_not_run
    environment.globals["table"] = Table.of
    return environment


def _is_not_run(finding: Finding) -> bool:
    return finding.verdict == "cannot be judged" and NOT_RUN.text in (finding.published, finding.corrected)
