"""benchmarks/: sections of results.md, goals, what is measured, and that results.md has the goals of today."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import bench  # noqa: E402
import measuring  # noqa: E402
import results  # noqa: E402
import sections  # noqa: E402
from results import Goal  # noqa: E402


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
        (28.0, "at least", "met, it is 28.00", 0),
        (27.99, "at least", "NOT met, it is 27.99", 1),
        (28.0, "at most", "met, it is 28.00", 0),
        (28.01, "at most", "NOT met, it is 28.01", 1),
        (None, "at least", "not known", 1),
    ],
)
def test_a_goal_that_is_not_met_or_not_known_fails(value: float | None, side: str, said: str, status: int) -> None:
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
        ((0, 0), 0, 1, "that is too long: they may take 0 minutes on two idle cores\n"),
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
    assert capfd.readouterr() == ("ran\nran\nthe benchmarks took 0.0 minutes\n", said)


def test_results_have_the_goals_of_today() -> None:
    text = (ROOT / "benchmarks" / "results.md").read_text(encoding="utf-8")
    for section in sections.SECTIONS.values():
        body = re.search(rf"^## {section.head}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        if body is None:  # it was not measured yet
            continue
        for each in section.goals:
            bound = f", {each.side} {each.bound:g}" if each.side else ""
            assert f"- {each.figure} of {each.above} / {each.below}{bound}: " in body[1]
