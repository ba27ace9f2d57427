"""`CleanPages`: the rules of a recipe that look at one page."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from c4pipe.beam.page_schema import CleanedPages, DroppedPage, Page, capture_of
from c4pipe.beam.read_pages import ReadPages
from c4pipe.beam.stage_reports import CountingFn, PageTransform, upstream
from c4pipe.clean import side_files, text_cleaner
from c4pipe.clean.evaluate import RecipeEvaluator
from c4pipe.errors import UsageError
from c4pipe.filters.column_rules import ColumnRule
from c4pipe.filters.language import Language
from c4pipe.recipes.choose import ListedRecipe, RecipeArgument, RecipeKeywords
from c4pipe.runners.control_totals import REPORT, Report

if TYPE_CHECKING:
    from typing_extensions import Unpack

_INPUT_COUNTS = ("pages.read", "bytes.read")


def choose_rules(recipe: RecipeArgument, **lists: "Unpack[RecipeKeywords]") -> ListedRecipe:
    """Returns the recipe that a user names, with its lists.

    Raises UsageError as `ListedRecipe.choose`, and for a recipe with further columns: a `Page` has none.
    """
    rules = ListedRecipe.choose(recipe, **lists)
    if rules.recipe.columns or any(isinstance(rule, ColumnRule) for _, rule in rules.recipe.rules()):
        raise UsageError(
            f"recipe {rules.recipe.name} is for pages with further columns, and pages of c4pipe.beam have none: "
            "run c4pipe build or c4pipe import with --runner"
        )
    return rules


class CleanPages(PageTransform):
    """Applies the rules of a recipe that come before the removal of duplicates, page by page.

    The rules of the recipe's stage `final` come after the removal: `RemoveRepeatedSpans.by_recipe` applies them. In
    `c4` and its variants the rule `language` is in both parts; in the `tfds` recipes it is only in the stage `final`.

    Returns `CleanedPages`: `kept`, a PCollection of Page with the cleaned text, and `dropped`, a PCollection of
    DroppedPage with the rule that dropped each page.

    >>> import apache_beam as beam
    >>> from c4pipe.beam import CleanPages, Page
    >>> text = "One sentence of five words. " * 3
    >>> with beam.Pipeline(options=IN_MEMORY) as pipeline:
    ...     pages = pipeline | beam.Create([Page("https://example.com/", "2019-04-18T10:12:43Z", text + "Javascript")])
    ...     cleaned = pages | CleanPages("c4", lists="samples/lists")
    ...     _ = cleaned.dropped | beam.Map(lambda each: print(each.page.url, each.reason))
    https://example.com/ few_sentences

    Metrics: `pages_cleaned`, `bytes_cleaned`, `pages_dropped/<rule>`, `lines_dropped/<rule>`, `lines_edited/<rule>`
    and others.
    """

    def __init__(
        self,
        recipe: RecipeArgument = "c4",
        **lists: "Unpack[RecipeKeywords]",
    ) -> None:
        """Reads the lists of the recipe on this machine. They go to the workers inside the pipeline.

        Args:
            recipe: a recipe's name, the path of a TOML file, or a recipe.
            lists: `languages`, `lists`, `links` and `language_model`, as in `c4pipe.build_corpus`. The model alone is
                not inside the pipeline: each worker reads it.

        Raises UsageError if the recipe is unknown, or if a list that it needs is missing.
        """
        super().__init__()
        self._rules = choose_rules(recipe, **lists)

    def expand(self, pages: beam.PCollection) -> Any:
        """Cleans each page."""
        is_read = any(isinstance(each, ReadPages) for each in upstream(pages).transforms)
        clean = beam.ParDo(_CleanPage(self._rules, not is_read)).with_input_types(Page)
        typed = clean.with_output_types(Page, **{"dropped": DroppedPage, REPORT: Report})
        outputs = pages | "Clean" >> typed.with_outputs("dropped", REPORT, main="kept")
        return CleanedPages(outputs.kept, outputs.dropped)


class _CleanPage(CountingFn):
    """Page -> the cleaned page, or the output `dropped`."""

    def __init__(self, rules: ListedRecipe, counts_input: bool) -> None:
        """Takes the recipe, and whether incoming pages count as read: `ReadPages` counts its own pages."""
        super().__init__()
        self._rules = rules
        self._ignored = () if counts_input else _INPUT_COUNTS

    def setup(self) -> None:
        recipe = self._rules.recipe
        before = replace(recipe, final=())
        self._evaluator = RecipeEvaluator(before, self._rules.lists)
        self._has_language = before.find(Language) is not None

    def process(self, element: Page) -> Iterator[Any]:
        page = text_cleaner.page_of_text(element.text, element.url, element.timestamp)
        verdict, checked = self._evaluator.clean(page)
        side_files.count_page(checked, verdict, self._evaluator.line_counters, self._counts)
        if verdict.reason:
            dropped = DroppedPage(element, verdict.reason, verdict.stage or "")
            yield beam.pvalue.TaggedOutput("dropped", dropped)
            return
        guess = checked.guess if self._has_language else None
        yield element._replace(
            text=checked.text,
            timestamp=checked.timestamp,
            capture=capture_of(element),
            language=guess.language if guess else None,
            language_probability=round(guess.probability, 6) if guess else None,
        )

    def finish_bundle(self) -> Iterator[Any]:
        for name in self._ignored:
            self._counts.pop(name, None)
        yield from super().finish_bundle()
