"""benchmarks/: sections of results.md, goals, what is measured, and that results.md has the goals of today."""

import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import bench  # noqa: E402
import measuring  # noqa: E402
import ratios  # noqa: E402
import results  # noqa: E402
import sections  # noqa: E402
from measuring import Cost  # noqa: E402
from results import Goal  # noqa: E402
from rounds import Measured, Row, ratio_spread  # noqa: E402


def test_a_section_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "results.md"
    file.write_text("# Benchmarks\n\nBy hand.\n\n## A\n\nold\n\n### part\n\nof A\n\n## B\n\nby hand, too\n")
    results.write_section("A", ["new", "", "it failed: no file /tmp/x/y.txt"], file)
    results.write_section("C", ["[a link](https://example.com/a/b)"], file)
    assert file.read_text() == (
        "# Benchmarks\n\nBy hand.\n\n## A\n\nnew\n\nit failed: no file (path)\n\n## B\n\nby hand, too\n\n"
        "## C\n\n[a link](https://example.com/a/b)\n"
    )


@pytest.mark.parametrize(
    ("value", "side", "said", "status"),
    [
        (28.0, "at least", "met, it is 28.00 (100%)", 0),
        (27.4, "at least", "missed, it is 27.40 (98%)", 0),
        (23.5, "at least", "NOT met, it is 23.50 (84%)", 1),
        (0.0, "at most", "NOT met, it is 0.00 (0%)", 1),
        (14.0, "at most", "met, it is 14.00 (200%)", 0),
        (29.0, "at most", "missed, it is 29.00 (97%)", 0),
        (34.0, "at most", "NOT met, it is 34.00 (82%)", 1),
        (None, "at least", "not known", 1),
    ],
)
def test_a_goal_that_is_missed_by_far_or_not_known_fails(
    value: float | None, side: str, said: str, status: int
) -> None:
    goal = Goal("cpu of a / b", value, side, 28)
    assert goal.line() == f"- cpu of a / b, {side} 28: {said}"
    assert results.check([Goal("other", 1.0, "at most", 2), goal]) == status


def test_spread() -> None:
    assert results.spread([2.0]) == "2.0"
    assert results.spread([1004.0, 1.0, 2.0]) == "2.0 (1.0 to 1,004.0)"


def test_the_cost_of_a_command_has_its_children_and_its_status() -> None:
    cost = measuring.measure(["sh", "-c", "head -c 3000000 /dev/zero | wc -c; exit 3"])
    assert (cost.output.strip(), cost.status) == ("3000000", 3)
    assert cost.wall > 0
    assert 0 < cost.peak < 50


def test_what_is_measured_has_bytecode(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("")
    script = "import measuring, sys; print(measuring.measure([sys.executable, '-c', 'import module']), file=sys.stderr)"
    folders = os.pathsep.join(map(str, (ROOT / "benchmarks", tmp_path)))
    environ = {**os.environ, "PYTHONPATH": folders, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", script], env=environ, check=True)
    assert list(tmp_path.glob("__pycache__/module.*.pyc"))


def test_a_peer_without_a_release_for_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measuring.has_release("datatrove")
    monkeypatch.setitem(measuring.RELEASES, "dolma", ((3, 8), (3, 9)))
    with pytest.raises(measuring.NotMeasured, match=r"^dolma has no release for this Python$"):
        measuring.environment("dolma")


@pytest.mark.parametrize(
    ("codes", "minutes", "status", "said"),
    [
        ((0, 0), 25, 0, ""),
        ((1, 0), 25, 1, ""),
        ((0, 0), 0, 1, "that is more than 15% too long\n"),
    ],
)
def test_all_benchmarks_run_and_their_time_is_limited(
    codes: tuple[int, ...],
    minutes: float,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "one.py").write_text("import sys; print('ran'); sys.exit(int(sys.argv[1]))")
    monkeypatch.setattr(bench, "HERE", tmp_path)
    assert bench.run([("one.py", str(code)) for code in codes], minutes) == status
    assert capfd.readouterr() == (
        f"ran\nran\nthe benchmarks took 0.0 minutes; on two idle cores, they may take {minutes}\n",
        said,
    )


def test_the_picture_has_each_ratio_with_a_goal_once() -> None:
    text = (
        "# Benchmarks\n\n## A\n\n- cpu of a / b, at least 2: met, it is 4.00, of any two runs 3.90 to 4.20 (200%)\n"
        "- wall of c / d, at most 0.5: NOT met, it is 0.75 (67%)\n- cpu of e / f: 3.00\n\n"
        "## B\n\n- wall of c / d, at most 0.5: not known\n- cpu of a / b, at least 2: missed, it is 1.90 (95%)\n"
    )
    found = ratios.ratios(text)
    assert found == [
        ("a / b", "at least", 2.0, 4.0),
        ("c / d, seconds", "at most", 0.5, 0.75),
        ("a / b, B", "at least", 2.0, 1.9),
    ]
    drawn = ratios.picture(text)
    ElementTree.fromstring(drawn)
    lengths = re.findall(r'<rect x="270" y="\d+" width="([\d.]+)"', drawn)
    assert float(lengths[0]) == pytest.approx(400 / 1.05, abs=0.1)
    assert float(lengths[1]) / float(lengths[0]) == pytest.approx(math.log(1.9) / math.log(4), abs=0.01)
    assert float(lengths[2]) == pytest.approx(400 / 1.05, abs=0.1)


def test_the_picture_is_that_of_the_results() -> None:
    assert ratios.PICTURE.read_text() == ratios.picture((ROOT / "benchmarks" / "results.md").read_text())


def test_the_spread_of_a_ratio_is_of_any_two_runs() -> None:
    costs = [[Cost(cpu, cpu, 1.0, "", 0) for cpu in runs] for runs in ((2.0, 4.0), (1.0, 2.0), (3.0,))]
    rows: dict[str, Row] = {name: Measured(runs, 1) for name, runs in zip("abc", costs, strict=True)}
    assert ratio_spread(rows, "cpu", "a", "b") == (1.0, 4.0)
    assert ratio_spread(rows, "cpu", "c", "c") is None
    assert ratio_spread({"a": rows["a"], "b": "not measured: why"}, "cpu", "a", "b") is None


def test_results_have_the_goals_of_today() -> None:
    text = (ROOT / "benchmarks" / "results.md").read_text(encoding="utf-8")
    for section in sections.SECTIONS.values():
        body = re.search(rf"^## {section.head}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        if body is None:  # it was not measured yet
            continue
        for each in section.goals:
            bound = f", {each.side} {each.bound:g}" if each.side else ""
            assert f"- {each.figure} of {each.above} / {each.below}{bound}: " in body[1]


SMALL = {
    "bench.py": "--help",
    "ratios.py": "",
    "peers.py": "--pages 15 --rounds 1 --only decode,build-tfds,build-tfds-2,build-c4,clean-tfds,clean-c4,clean-gopher",
    "training_peers.py": "--pages 15 --pieces 400 --rounds 1 --only c4pipe-spans,c4pipe-masked,c4pipe-read",
    "parts.py": "--pages 15 --recipes c4",
    "near_peers.py": "--pages 200 --words 30 --rounds 1 --only c4pipe",
    "many_crawls.py": "--files 2 --known 2",
    "many_months.py": "--months 2 --files 1",
    "near_scale.py": "--files 2 --pages 20",
    "real_size.py": "samples/crawl --recipes tfds",
    "scale.py": "--files 2 --spans 500",
    "objectives.py": "--pages 15 --pieces 400 --seconds 1",
    "token_files.py": "--pages 15 --pieces 400 --rounds 1",
}
"""The benchmarks with small data. Their figures mean nothing, so goals may be missed: peers take no part."""


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone alone, with what is built in it."""
    clone = tmp_path_factory.mktemp("alone") / "clone"
    for name in ("benchmarks", "c4pipe", "parity", "requirements", "samples", "tests/data", "tests/helpers"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    (clone / "tests" / "__init__.py").touch()
    return clone


@pytest.mark.consumers  # of token_files.py
@pytest.mark.slow
@pytest.mark.parametrize("script", SMALL)
def test_each_benchmark_runs_in_a_clone_alone(clone: Path, script: str) -> None:
    command = [sys.executable, str(clone / "benchmarks" / script), *SMALL[script].split()]
    environ = {**os.environ, "PYTHONPATH": str(clone)}
    done = subprocess.run(command, cwd=clone, env=environ, capture_output=True, text=True, check=False, timeout=300)
    missed = re.findall("^- .*: NOT met", done.stdout, re.MULTILINE)
    assert done.returncode == (1 if missed else 0), done.stdout + done.stderr
    assert "not measured" not in done.stdout


def test_every_benchmark_is_tried() -> None:
    scripts = {path.name for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text()}
    assert scripts == {*SMALL, "html_text.py", "make_crawl.py", "measuring.py", "sentences.py"}  # which needs treebanks


def test_texts_of_html_are_compared_and_all_readers_find_the_pages(tmp_path: Path) -> None:
    import html_text

    main = "<p>" + "The history of the town begins in the year 1240, when monks built a mill. " * 5
    (tmp_path / "a.html").write_text(f"<html><body><nav>Menu</nav><article>{main}</article></body></html>")
    pages = [tmp_path / "a.html"]
    rows = [line.strip("|").split("|") for line in list(html_text.texts(pages))[2:]]
    assert [row[0].strip() for row in rows] == ["`all`", "`main`", "`trafilatura`"]
    assert [row[3].strip() for row in rows] == ["100.0%"] * 3
    assert [row[4].strip() for row in rows] == ["93.3%", "100.0%", "100.0%"]
    warc = html_text.write_pages(tmp_path / "a.warc.gz", pages, 3)
    assert [html_text.run(task, name, warc) for task in ("hand", "reader") for name in ("none", "main")] == [3] * 4
