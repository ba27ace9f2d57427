"""The known limits of a corpus, for its dataset card; their text is in templates/card_limits.md."""

from collections.abc import Sequence

from c4pipe.filters.classifier_rule import ClassifierScore
from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.filters.language import Language
from c4pipe.filters.lines import FewWords
from c4pipe.filters.page_size import FewSentences, FewSentencesLeft
from c4pipe.filters.rules import BLOCKED_URL_RULES, OPT_OUT_RULES
from c4pipe.filters.word_rules import CountRule
from c4pipe.recipes.recipe import Recipe
from c4pipe.report.rendering import render
from c4pipe.text.languages import two_letter_code
from c4pipe.text.scripts.facts import scripts_of
from c4pipe.text.scripts.words import note_on_words
from c4pipe.text.sentences import punkt_model

_DETECTORS = {"langdetect": "langdetect", "cld3": "CLD3", "fasttext": "a fastText model"}


def render_limits(recipe: Recipe, languages: Sequence[str], missing: int) -> str:
    """Returns the known limits of a corpus as a list in Markdown.

    Args:
        recipe: the recipe of the corpus.
        languages: codes of the languages that have pages.
        missing: how many of the input files could not be fetched, or have no record.
    """
    rules = [rule for _, rule in recipe.rules()]
    return render(
        "card_limits.md",
        recipe=recipe,
        missing=missing,
        detector=_DETECTORS[recipe.need(Language).detector],
        words=note_on_words(recipe.need(FewWords).scripts),
        counts_words=any(isinstance(rule, CountRule) for rule in rules),
        english_model=_find_counted_as_english(recipe, languages),
        span=recipe.find(RepeatedSpan),
        block_lists=any(isinstance(rule, BLOCKED_URL_RULES) for rule in rules),
        opt_out_lists=any(isinstance(rule, OPT_OUT_RULES) for rule in rules),
        classified=any(isinstance(rule, ClassifierScore) for rule in rules),
    )


def _find_counted_as_english(recipe: Recipe, languages: Sequence[str]) -> list[str]:
    """Returns the languages other than English whose sentences Punkt's English model counts."""
    sentences = recipe.find(FewSentences)
    counting = [rule for rule in (sentences, recipe.find(FewSentencesLeft)) if rule]
    by_language = {rule.model for rule in counting} == {"language"}
    scripts = sentences.scripts if sentences else ()
    return [
        each
        for each in languages
        if counting
        and two_letter_code(each) != "en"
        and (not by_language or punkt_model(each) == "english")
        and not {*scripts_of([each])}.intersection(scripts)
    ]
