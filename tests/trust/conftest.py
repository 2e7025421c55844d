"""What the trust tests share: counts of what was tried, and the process that forks commands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from counting import FILE, Counts
from forked import Server


@pytest.fixture(scope="session")
def counts(request: pytest.FixtureRequest) -> Counts:
    """With --counts, write what was tried to the file and skip what it holds already."""
    return Counts(FILE if request.config.getoption("--counts") else None)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running
