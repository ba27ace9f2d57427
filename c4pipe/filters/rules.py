"""All rules of c4pipe by name, in the order of the documentation."""

from collections.abc import Mapping

from c4pipe.filters.body_lines import BodyLines, MetadataLine
from c4pipe.filters.classifier_rule import ClassifierScore
from c4pipe.filters.column_rules import ColumnBelow, LabelNotWanted, UsageRefused
from c4pipe.filters.corpus_rules import NearDuplicate, NormalisedUrl, RepeatedSpan, StaleCapture, Validation
from c4pipe.filters.damaged_text import DamagedCharacters
from c4pipe.filters.evaluation_overlap import EvaluationOverlap
from c4pipe.filters.language import Language
from c4pipe.filters.lines import Citation, FewWords, LongWord, NoTerminalPunctuation
from c4pipe.filters.listed_words import BadToken, BadWords
from c4pipe.filters.page_size import Empty, FewLongLines, FewSentences, FewSentencesLeft, Incomplete, TooLong
from c4pipe.filters.personal_data import EmailAddress, PublicIpAddress
from c4pipe.filters.phrases import CurlyBracket, Javascript, JavascriptPage, LoremIpsum, Policy
from c4pipe.filters.refinedweb_rules import BoilerplateLine, ManyRemovedWords, SitePhrase
from c4pipe.filters.repetition_rules import REPETITION_RULES, RepeatedCharacters
from c4pipe.filters.rule import Rule
from c4pipe.filters.url_rules import (
    BannedUrlSubword,
    BannedUrlWord,
    BlockedDomain,
    BlockedUrl,
    DomainNotListed,
    OptedOut,
    RobotsRefused,
    SoftBannedUrlWords,
    UrlNotListed,
)
from c4pipe.filters.word_rules import GOPHER_RULES, FewPunctuatedLines, ManyNewlines, ManyShortLines

FINEWEB_RULES: tuple[type[Rule], ...] = (FewPunctuatedLines, ManyShortLines, RepeatedCharacters, ManyNewlines)
"""FineWeb's own quality rules, in datatrove's order."""

BLOCKED_URL_RULES: tuple[type[Rule], ...] = (
    BlockedDomain,
    BlockedUrl,
    BannedUrlWord,
    SoftBannedUrlWords,
    BannedUrlSubword,
)
REFINEDWEB_RULES: tuple[type[Rule], ...] = (BoilerplateLine, SitePhrase, ManyRemovedWords)
OPT_OUT_RULES: tuple[type[Rule], ...] = (OptedOut, RobotsRefused)
RESERVATION_RULES: tuple[type[Rule], ...] = (*OPT_OUT_RULES, UsageRefused)

_IN_ORDER: tuple[type[Rule], ...] = (
    *(BodyLines, MetadataLine, Incomplete, TooLong, StaleCapture, NormalisedUrl),
    *(LongWord, Citation, NoTerminalPunctuation, FewWords, LoremIpsum, Javascript, CurlyBracket, Policy),
    *(FewSentences, NearDuplicate, RepeatedSpan, FewSentencesLeft, Empty, Language, BadWords, Validation),
    *(DomainNotListed, UrlNotListed, FewLongLines, JavascriptPage, BadToken),
    *(*GOPHER_RULES, *REPETITION_RULES, *FINEWEB_RULES),
    *REFINEDWEB_RULES,
    *(EmailAddress, PublicIpAddress),
    *(*BLOCKED_URL_RULES, *RESERVATION_RULES),
    DamagedCharacters,
    EvaluationOverlap,
    ColumnBelow,
    ClassifierScore,
    LabelNotWanted,
)

RULES: Mapping[str, type[Rule]] = {rule.name: rule for rule in _IN_ORDER}
