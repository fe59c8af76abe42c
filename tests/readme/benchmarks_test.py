# SPDX-License-Identifier: Apache-2.0
"""The benchmarks' page and README's table show bench/results.json, and its summaries are those of the raw files."""

import importlib.util
import json
import re

import pytest


@pytest.fixture(scope="module")
def report(source_dir):
    spec = importlib.util.spec_from_file_location("report", source_dir / "bench/report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def results(source_dir):
    return json.loads((source_dir / "bench/results.json").read_text())


def test_the_page_and_readme_show_the_results(report):
    assert report.stale_files() == []


def test_readme_has_the_figures_of_the_results(source_dir, results):
    text = (source_dir / "README.md").read_text()
    table = re.search(r"<!-- measured: begin.*?-->\n(.*?)<!-- measured: end -->", text, re.DOTALL).group(1)
    rows = re.findall(r"^\| (\w+) → (\w+) \| ([\d.]+) \| \**([\d.]+) ", table, re.MULTILINE)
    assert rows
    measured = {(row["from"], row["to"]): row["peers"]["tensorcast"] for row in results["peers"]["rows"]}
    for source, target, speed, ratio in rows:
        ours = measured[source, target]
        assert (float(speed), float(ratio)) == (round(ours["gigabytes_per_second"], 1), pytest.approx(ours["median"], abs=0.006))
    medians = [median for _, _, median, _, _ in results["pairs"]["rows"]]
    assert f"All {len(medians)} pairs" in table
    assert f"at worst {max(medians):.2f} " in table


def test_results_stay_small(source_dir):
    assert (source_dir / "bench/results.json").stat().st_size < 200_000


def test_only_the_best_of_a_row_is_bold(report):
    def entry(median):
        return {"median": median, "low": median, "high": median}

    cells = list(report.contest([entry(0.8), entry(0.7) | {"differs": {}}, None, entry(0.701)], min))
    assert cells == ["0.80 (0.80–0.80)", "**0.70 (0.70–0.70)**", "–", "**0.70 (0.70–0.70)**"]
    assert list(report.contest([entry(20.0), entry(30.0)], max, 1))[1].startswith("**")


def row(source, target, median):
    return {"from": source, "to": target, "size": "memory", "ns": 1.0, "median": median, "low": median - 0.1, "high": median + 0.1}


def run(variant, rows, offset=16, target="avx2"):
    copy = row("uint8", "uint8", 1.0)
    return {
        "machine": {"target": target}, "variant": variant, "mib": 128, "offset": offset, "threads": 1, "rounds": 5,
        "bits": {"float32": 32, "float16": 16, "int64": 64, "int4": 4}, "memcpy": [copy], "rows": rows,
    }


def test_summaries_are_those_of_the_raw_files(report, tmp_path):
    plain = [row("float32", "float16", 0.5), row("int4", "float32", 2.0)]
    raw = {
        "a": run("plain", plain),
        "b": run("plain", [row("float32", "float16", 9.0)], offset=0),
        "c": run("report", [row("float32", "float16", 2.0), row("int4", "int64", 3.0), row("int64", "float16", 4.0)]),
        "d": run("plain", [row("float32", "float16", 9.0)], target="portable"),
    }
    for name, document in raw.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    results = report.summarize(tmp_path)
    assert results["machine"]["target"] == "avx2"
    assert results["pairs"]["rows"] == [["float32", "float16", 0.5, 0.4, 0.6], ["int4", "float32", 2.0, 1.9, 2.1]]
    first = results["plain"][0]
    assert (first["pairs"], first["mean"], first["above"], first["worst"]["from"]) == (2, 1.0, 1, "int4")
    narrow, others = results["groups"]
    assert (narrow["pairs"], narrow["limit"], narrow["above"], narrow["worst"]["median"]) == (2, 2.5, 1, 3.0)
    assert (others["pairs"], others["group"], others["above"]) == (1, "every other pair", 0)


def test_a_later_run_of_peers_comes_in_parts(report, tmp_path):
    paths = []
    for name in ("float16", "int8"):
        part = {"versions": {"Other": "1"}, "mib": 128, "rounds": 3, "rows": [{"from": "float32", "to": name, "peers": {}}]}
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(part))
    peers = report.later_peers(paths)
    assert [row["to"] for row in peers["rows"]] == ["float16", "int8"]
    assert peers["date"]


def test_the_section_names_who_is_behind(report):
    def spread(median):
        return {"median": median, "low": median, "high": median}

    rows = [
        {"from": "float32", "to": "int8", "peers": {"tensorcast": spread(1.0), "memcpy": spread(0.1), "Other": spread(0.9)}},
        {"from": "float32", "to": "bool", "peers": {"tensorcast": spread(1.0), "memcpy": spread(0.1)}},
    ]
    text = report.peers_section({"versions": {"Other": "1"}, "mib": 128, "rounds": 3, "rows": rows})
    assert "a mean of 1.00 over 2 pairs; more than 5 % behind another: float32 to int8." in text
