"""The filters on a text as a function, for Python: `c4pipe.explain_text`."""

from collections.abc import Sequence

from c4pipe.clean.text_cleaner import Cleaner
from c4pipe.clean.verdicts import PageVerdict
from c4pipe.jobs.api_arguments import PathArgument, codes
from c4pipe.recipes.recipe import Recipe


def explain_text(
    text: str,
    *,
    url: str | None = None,
    recipe: PathArgument | Recipe = "c4",
    languages: str | Sequence[str] = (),
    lists: PathArgument | None = None,
    links: Sequence[PathArgument] = (),
    language_model: PathArgument | None = None,
) -> PageVerdict:
    """Returns what each rule of a recipe decides about a text. The command `c4pipe explain`.

    Args:
        text: the text of a page.
        url: where it is from; recipes that look at URLs need it.

    The other arguments are those of `build_corpus`. To explain many texts, use the method `explain` of one `Cleaner`.

    Returns a verdict with `reason` (the rule that drops the text, or None), `rules` (the decision of each page rule),
    `lines` (what the line rules do to each line) and `text` (what they leave).

    Raises UsageError as `Cleaner` does.
    """
    cleaner = Cleaner(recipe, languages=codes(languages), lists=lists, links=links, language_model=language_model)
    return cleaner.explain(text, url=url)
