"""The public names and their signatures are those of tests/data/api.txt, and importing the package
is lazy.

After a change of the public API on purpose, write the file again and commit it with the change:

    python -m pytest tests/test_api.py --update-api
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import frhsic

SNAPSHOT = Path(__file__).parent / "data" / "api.txt"
MODULES = ["frhsic", *(f"frhsic.{name}" for name in frhsic._MODULES)]


def signature(value: Any) -> str:
    """Names, kinds and defaults of the parameters, without annotations."""
    try:
        full = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in full.parameters.values()
    ]
    text = str(full.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return re.sub(r" at 0x[0-9a-f]+", "", text)  # where a default function lies in memory


def described(name: str, value: Any) -> list[str]:
    if not inspect.isclass(value):
        return [f"{name}{signature(value)}" if inspect.isroutine(value) else name]
    lines = [f"class {name}{signature(value)}"]
    for key in sorted(dir(value)):
        owner = next((base for base in value.__mro__ if key in vars(base)), object)
        if (
            key.startswith("_")
            or key.endswith("_request")
            or not owner.__module__.startswith("frhsic")
        ):
            continue
        member = getattr(value, key)
        lines.append(f"    .{key}{signature(member) if inspect.isroutine(member) else ''}")
    return lines


def public_api() -> str:
    lines = []
    for name in MODULES:
        module = import_module(name)
        lines += ["", f"# {name}"]
        for each in sorted(module.__all__):
            lines += described(each, getattr(module, each))
    return "\n".join(lines).strip() + "\n"


def test_the_public_api_is_the_one_on_record(request: pytest.FixtureRequest) -> None:
    api = public_api()
    if request.config.getoption("--update-api"):
        SNAPSHOT.write_text(api, encoding="utf-8")
    assert api == SNAPSHOT.read_text(encoding="utf-8"), (
        "the public API changed; if that is on purpose see CONTRIBUTING.md and run "
        "python -m pytest tests/test_api.py --update-api"
    )


def test_every_public_class_and_function_has_an_example() -> None:
    for name in MODULES:
        module = import_module(name)
        for each in module.__all__:
            value = getattr(module, each)
            if inspect.isclass(value) or inspect.isroutine(value):
                assert ">>> " in (value.__doc__ or ""), f"{name}.{each} has no example"


def test_importing_the_package_is_lazy() -> None:
    heavy = (
        "{'torch', 'numpy', 'pandas', 'sklearn', 'scipy', 'matplotlib', 'lightgbm', 'rich',"
        " 'typer'}"
    )
    code = f"import sys, frhsic; dir(frhsic); print(sorted({heavy} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
