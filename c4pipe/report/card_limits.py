"""The known limits of a corpus, for its dataset card."""

from collections.abc import Iterator, Sequence

from c4pipe.filters.classifier_rule import ClassifierScore
from c4pipe.filters.corpus_rules import NearDuplicate, RepeatedSpan
from c4pipe.filters.evaluation_overlap import EvaluationOverlap
from c4pipe.filters.language import Language
from c4pipe.filters.lines import FewWords, NoTerminalPunctuation
from c4pipe.filters.listed_words import BadToken, BadWords
from c4pipe.filters.page_size import FewLongLines, FewSentences, FewSentencesLeft
from c4pipe.filters.personal_data import EmailAddress, PublicIpAddress
from c4pipe.filters.phrases import CurlyBracket
from c4pipe.filters.rules import BLOCKED_URL_RULES, OPT_OUT_RULES
from c4pipe.filters.url_rules import DomainNotListed, UrlNotListed
from c4pipe.filters.word_rules import CountRule
from c4pipe.recipes.recipe import Recipe
from c4pipe.text.languages import two_letter_code
from c4pipe.text.scripts.facts import scripts_of
from c4pipe.text.scripts.words import note_on_words
from c4pipe.text.sentences import punkt_model

_DODGE = (
    "[Dodge et al. 2021](https://aclanthology.org/2021.emnlp-main.98/), *Documenting Large Webtext Corpora: A Case "
    "Study on the Colossal Clean Crawled Corpus*"
)


def limits(recipe: Recipe, languages: Sequence[str], missing: int) -> Iterator[str]:
    """Yields the known limits of a corpus, each in one or more sentences of Markdown.

    Args:
        recipe: the recipe of the corpus. A limit that comes from a rule is named only if the recipe has that rule.
        languages: codes of the languages that have pages.
        missing: how many of the input files could not be fetched, or have no record.
    """
    if missing:
        yield f"{missing:,} of the requested {recipe.input_format} files could not be fetched, or have no record."
    if recipe.find(BadWords) or recipe.find(BadToken):
        yield (
            "The list of bad words removes more than it is meant to: text by and about minorities is dropped more "
            f"often than other text, and so is text on health and law. See {_DODGE}. A language without a list is "
            "not filtered."
        )
    else:
        yield "No list of bad words was applied, so there is offensive text in the corpus."
    if language := recipe.find(Language):
        yield _language_limit(language.detector)
    if recipe.find(NoTerminalPunctuation) or recipe.find(FewWords):
        yield (
            "The rules favour prose. They drop headings, lists, tables, verse, captions and much of what people write "
            "in forums."
        )
        if note := note_on_words(recipe.need(FewWords).scripts):
            yield f"The rule {note}."
    elif recipe.find(FewSentences) or recipe.find(FewLongLines):
        yield "The rules favour prose. They drop pages of short lines or few sentences."
    if recipe.find(CurlyBracket):
        yield "A page or line with a curly bracket is dropped, and with it most program code."
    if any(isinstance(rule, CountRule) for _, rule in recipe.rules()):
        yield _extraction_limit(recipe.extraction)
    yield from _sentence_limit(recipe, languages)
    yield _repetition_limit(recipe)
    yield from _list_limits(recipe)
    if any(isinstance(rule, ClassifierScore) for _, rule in recipe.rules()):
        yield (
            "A classifier chose the pages by their text. It prefers what is like its training examples, and "
            "drops dialects, subjects and kinds of text that these lack."
        )
    masked = recipe.find(EmailAddress) or recipe.find(PublicIpAddress)
    if masked:
        yield "E-mail or IP addresses were replaced where a pattern finds them. Names and postal addresses stay."
    if recipe.find(EvaluationOverlap):
        yield (
            "Pages that share text with the evaluation examples that were given to the build were dropped. Other "
            "examples, translations and other wordings of them can be in the corpus."
        )
    yield (
        f"Nothing was done about {'' if masked else 'personal data, '}false or hateful statements, machine-written "
        f"text, or pages that are also in {'other' if recipe.find(EvaluationOverlap) else 'the'} test sets of "
        "benchmarks."
    )


def _list_limits(recipe: Recipe) -> Iterator[str]:
    if recipe.find(DomainNotListed) or recipe.find(UrlNotListed):
        yield "All pages come from a list of domains or links, so the corpus has the subjects of that list."
    if any(map(recipe.find, BLOCKED_URL_RULES)):
        yield (
            "Pages were dropped by lists of domains, URLs or words that were given to the build. Such lists have "
            "errors. A word in a URL says little about a page: pages on health or law are dropped, too."
        )
    if any(map(recipe.find, OPT_OUT_RULES)):
        yield (
            "Pages were dropped by lists of opt-outs that were given to the build, as they were on that day. An opt-"
            "out that the lists do not have, or that came later, has no effect."
        )


def _extraction_limit(extraction: str) -> str:
    made_for = "The rules that count something in a whole page were made for text that trafilatura extracts from HTML. "
    if extraction.startswith("trafilatura"):
        return (
            f"{made_for}So is the text here. But no page was compared with those before it (`deduplicate`), and other "
            "versions of trafilatura find other text."
        )
    if extraction.startswith("main"):
        return f"{made_for}The text here is what resiliparse finds, so these rules drop other pages."
    text = "all text of a page" if extraction else "that of WET files"
    return (
        f"{made_for}The text here is {text}, with menus and footers, so these rules drop more pages than in the "
        "corpora that they come from."
    )


def _language_limit(detector: str) -> str:
    name = {"langdetect": "langdetect", "cld3": "CLD3", "fasttext": "a fastText model"}[detector]
    return (
        f"The language is {name}'s guess for the whole page. Most errors are in short texts, closely related "
        "languages, dialects, and pages in several languages."
    )


def _sentence_limit(recipe: Recipe, languages: Sequence[str]) -> Iterator[str]:
    counting = recipe.find(FewSentences), recipe.find(FewSentencesLeft)
    models = {rule.model for rule in counting if rule}
    by_language = models == {"language"}
    scripts = counting[0].scripts if counting[0] else ()
    english = [
        each
        for each in languages
        if two_letter_code(each) != "en" and (not by_language or punkt_model(each) == "english")
        if not {*scripts_of([each])}.intersection(scripts)
    ]
    if models and english:
        yield f"Punkt's English model also counts the sentences of other languages: {', '.join(english)}."


def _repetition_limit(recipe: Recipe) -> str:
    repeated, near = recipe.find(RepeatedSpan), recipe.find(NearDuplicate)
    if near and not repeated:
        return (
            "Of pages that are nearly the same, one stays. An estimate from a sample of each page's words decides, so "
            "some near copies stay and some pages were dropped for one that differs more. Text that different pages "
            "share stays in each of them."
        )
    if not repeated:
        return "Only captures of one URL were deduplicated: a text that is at two URLs is in the corpus twice."
    size, unit = repeated.size, repeated.unit
    what = f"{size} {unit}s in a row" if size > 1 else f"a {unit}"
    copies = "One page of several near copies stays, by an estimate" if near else "Near copies stay"
    return f"Only exact repeats of {what} are removed. {copies}, and a text can have a gap where a repeat was removed."
