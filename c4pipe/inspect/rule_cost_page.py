"""What the rules of a recipe drop and cost, as a page in the style of the report."""

from c4pipe.clean.evaluate import operations_of
from c4pipe.corpus.funnel import percent
from c4pipe.inspect.rule_cost import RuleDrops, RuleTimes
from c4pipe.io.words import format_count, short
from c4pipe.recipes.recipe import Recipe
from c4pipe.report.rendering import Block, HeatMap, Paragraph, Row, Section, Table, render, share_bar

_WORDING_SIZE = 600  # characters of a recipe's description, and of a rule's


def render_cost(recipe: Recipe, drops: RuleDrops, times: RuleTimes) -> str:
    """Returns a page in HTML, without scripts, about the rules of a recipe: their pages, overlap, lines and time."""
    sections = [
        Section("pages", "Pages", _pages(recipe, drops, times)),
        Section("overlap", "Pages that two rules drop", _overlap(drops)),
        Section("lines", "Lines", _lines(recipe, drops, times)),
    ]
    dropped = sum(drops.first.values())
    return render(
        "cost.html",
        title=f"What the rules of {recipe.name} drop and cost",
        description=short(recipe.description, _WORDING_SIZE),
        facts={
            "pages": f"{drops.pages:,}",
            "of them dropped": f"{percent(dropped, drops.pages)} %",
            "page rules": f"{len(drops.rules)}",
            "microseconds a page": f"{sum(times.by_rule.values()) + times.shared:,.1f}",
        },
        sections=[section for section in sections if section.blocks],
    )


def _sentences(recipe: Recipe) -> dict[str, str]:
    """Returns what each rule does, by its name."""
    operations = [each.rule for each in operations_of(recipe) if each.rule]
    return {rule.name: short(recipe.sentence(rule), _WORDING_SIZE) for rule in operations}


def _pages(recipe: Recipe, drops: RuleDrops, times: RuleTimes) -> list[Block]:
    sentences, dropped = _sentences(recipe), drops.dropped

    def row(rule: str, dropped: int, alone: int, first: int, taken: float) -> Row:
        cells = (f"{dropped:,}", percent(dropped, drops.pages), f"{alone:,}", f"{first:,}", f"{taken:,.1f}")
        is_total = rule not in sentences
        return Row(rule, cells, share_bar(dropped, drops.pages, "dropped"), sentences.get(rule, ""), total=is_total)

    rows = [row(rule, dropped[rule], drops.alone[rule], drops.first[rule], times.by_rule[rule]) for rule in drops.rules]
    shared = "what several rules need, such as the words of a page"
    rows.append(Row("shared", ("", "", "", "", f"{times.shared:,.1f}"), note=shared))
    first, alone = sum(drops.first.values()), sum(drops.alone.values())
    rows.append(row("any rule", first, alone, first, sum(map(times.by_rule.__getitem__, drops.rules)) + times.shared))
    return [
        Paragraph(
            "Each rule is applied to all pages, also where a rule before it drops the page. Alone: no other rule drops "
            "the page. First: no rule before it drops the page; this is what build counts."
        ),
        Paragraph(
            f"\u00b5s: microseconds a page on one core of the machine that made this report, measured on "
            f"{format_count(times.pages, 'page')}."
        ),
        Table("Page rules", ("rule", "dropped", "%", "alone", "first", "\u00b5s"), rows, chart="of all pages"),
    ]


def _overlap(drops: RuleDrops) -> list[Block]:
    overlap = drops.overlap()
    others = [rule for rule in drops.rules if rule not in overlap]
    blocks: list[Block] = [
        Paragraph(
            "A row is a rule. Each number says of 100 pages that this rule drops how many the rule of the column drops "
            "as well. Where it is 100, the rule of the row drops no page alone."
        ),
        HeatMap("Pages that two rules drop, in percent of the row", list(overlap), list(overlap.values())),
    ]
    if others:
        blocks.append(Paragraph(f"These rules drop no page: {', '.join(others)}."))
    return blocks if overlap else []


def _lines(recipe: Recipe, drops: RuleDrops, times: RuleTimes) -> list[Block]:
    sentences = _sentences(recipe)
    rows = [
        Row(
            rule,
            (f"{lines:,}", percent(lines, drops.lines_read), f"{times.by_rule[rule]:,.1f}"),
            share_bar(lines, drops.lines_read, "dropped"),
            note=sentences[rule],
        )
        for rule, lines in drops.lines.items()
    ]
    caption = f"Line rules: lines that they drop or change, of {drops.lines_read:,}"
    return [Table(caption, ("rule", "lines", "%", "\u00b5s"), rows, chart="of all lines")] if rows else []
