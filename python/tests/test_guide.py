# SPDX-License-Identifier: Apache-2.0
"""What the guide and the README show of Python is what one gets: every recipe runs in an empty folder."""

import doctest
import pathlib
import re

import ml_dtypes
import numpy as np
import pytest

import tensorcast as tc

ROOT = pathlib.Path(__file__).parents[2]
OPTIONAL = ("matplotlib", "onnx", "safetensors", "torch", "xarray")


def recipes():
    """Title and session of each part of the documents that has one."""
    for document in ("docs/guide.md", "README.md", "docs/rounding.md"):
        for part in re.split(r"^## ", (ROOT / document).read_text(), flags=re.MULTILINE):
            session = "".join(re.findall(r"^```pycon\n(.*?)^```$", part, re.MULTILINE | re.DOTALL))
            if session:
                yield pytest.param(session, id=f"{document}: {part.splitlines()[0]}")


class Checker(doctest.OutputChecker):
    """Whether a dtype stands in quotes depends on the versions of NumPy and ml_dtypes."""

    def check_output(self, want, got, optionflags):
        plain = [re.sub(r"dtype='(\w+)'", r"dtype=\1", text) for text in (want, got)]
        return super().check_output(*plain, optionflags)


RECIPES = list(recipes())


@pytest.mark.parametrize("session", RECIPES)
def test_recipe(session, tmp_path, monkeypatch):
    for module in OPTIONAL:
        if re.search(rf"import {module}\b", session) or (module == "torch" and 'framework="pt"' in session):
            pytest.importorskip(module)
    if tuple(map(int, np.__version__.split(".")[:2])) < (2, 3):
        pytest.skip("older NumPy prints numbers in another way")
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(
        session, {"ml_dtypes": ml_dtypes, "np": np, "tc": tc}, "recipe", None, None
    )
    said = []
    failed, tried = doctest.DocTestRunner(checker=Checker(), optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert tried and not failed, "".join(said)


def test_the_guide_has_its_recipes():
    titles = [recipe.id for recipe in RECIPES]
    assert sum(title.startswith("docs/guide.md") for title in titles) >= 11
    assert sum(title.startswith("README.md") for title in titles) >= 1
