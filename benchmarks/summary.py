"""The head of results.md: its picture, and five sentences made of the figures in its sections.

results.py writes it again whenever a benchmark writes a section, so no figure in it is typed by hand.
"""

import re

UNKNOWN = "(not measured)"
BUILD, LARGE, RECIPES = "Build and clean", "160,000 pages", "Recipes of other corpora"

HEAD = """# Benchmarks

![The ratios below that have a goal, with their goals as lines](ratios.svg)

{sentences}

`make bench` writes the sections "Build and clean", "Recipes of other corpora", "Classifiers" and "Batches for
training"; the other sections name their commands. Each has the commit that it was measured at; a section that names no
commit is older than this rule.

"""


def section(text: str, head: str) -> str:
    """Returns a section of results.md, or nothing."""
    found = re.search(rf"^## {head}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def figure(body: str, pattern: str) -> str:
    """Returns the figure that a pattern finds in a section."""
    found = re.search(pattern, body, re.MULTILINE)
    return found[1] if found else UNKNOWN


def ratio(body: str, what: str, digits: int = 0) -> str:
    """Returns a ratio of a section, with or without a goal."""
    found = figure(body, rf"^- {what}(?:, at (?:least|most) [\d.]+: .*? it is |: )([\d.]+)")
    return found if found == UNKNOWN else f"{float(found):.{digits}f}"


def sentences(text: str) -> list[str]:
    """Returns what the sections say, in five sentences, as a list of Markdown."""
    build, large, recipes = (section(text, head) for head in (BUILD, LARGE, RECIPES))
    pages = {name: figure(build, rf"^\| {name} \|(?:[^|]*\|){{2}} ([\d,]+) \|") for name in ("tfds", "build-tfds")}
    hours = {name: figure(large, rf"`build-{name}` ([\d.]+) CPU-hours") for name in ("c4", "tfds", "fineweb")}
    two = ratio(large, "wall of build-tfds-2 / build-tfds", 2)
    return [
        f"- TensorFlow Datasets takes {ratio(build, 'cpu of tfds / build-tfds')} times the CPU of c4pipe's recipe "
        f"`tfds` on the same files, and leaves {pages['tfds']} pages, c4pipe {pages['build-tfds']}.",
        f"- datatrove takes {ratio(build, 'cpu of datatrove / build-tfds')} times that CPU with its rules of C4, "
        f"without dedup; with FineWeb's rules and MinHash, {ratio(recipes, 'cpu of fineweb / build-fineweb')} times "
        "the CPU of the recipe `fineweb`.",
        f"- Dolma takes {ratio(recipes, 'cpu of dolma-c4 / clean-dolma-c4')} times the CPU of c4pipe with its own "
        "rules of C4, both without languages.",
        f"- A terabyte of text takes {hours['c4']} CPU-hours with `c4`, {hours['tfds']} with `tfds` and "
        f"{hours['fineweb']} with `fineweb`, from WET files to a corpus: measured on 160,000 pages.",
        f"- Two workers need {two} of the seconds of one for these 160,000 pages.",
    ]


def with_head(text: str) -> str:
    """Returns results.md with the head that follows from its sections."""
    _, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    return "".join([HEAD.format(sentences="\n".join(sentences(text))), *sections])
