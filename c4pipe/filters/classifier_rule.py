"""The rule on the score of a classifier: a fastText model that the user names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.rule import Others, PageRule, Share
from c4pipe.io.words import FILE_ERRORS, explain_errors, short, suggestion
from c4pipe.lists.lists import ListFolder
from c4pipe.text.classifier import ClassifierModel, best_label

CLASSIFIERS_FOLDER = "classifiers"
"""The folder, in a lists folder, of the user's classifiers."""

_NEWLINES: Mapping[str, Callable[[str], str]] = {
    "blanks": lambda text: text.replace("\n", " "),
    "line separators are blanks": lambda text: " ".join(text.splitlines()),
    "removed": lambda text: text.replace("\n", ""),
}


class ClassifierScore(PageRule):
    """Drops a page by the probability that a fastText classifier gives to a label. A recipe can have several.

    The classifier gets the text as one line, without white space at its ends. With `keep` = `score`, no page is
    dropped, and the probability is a column of the corpus with the name of the rule. With `keep` = `label`, the best
    label is that column, and its probability another one.
    """

    name: str = "classifier_score"  # type: ignore[misc] # a class variable of other rules
    does = (
        "drops a page to which the classifier {model} gives the label {label} with a probability below {min_score} or "
        "above {max_score}"
    )
    source = (
        "as DCLM-Baseline is chosen (Li et al. 2024, 4.4); probabilities as in datatrove 0.10.1, fasttext_filter.py"
    )
    stage = "cleaned"
    counts = "float"
    drops_if = ("< min_score", "> max_score")
    needs = ("classifiers",)
    names_itself = True
    file_parameters = ("model",)
    model: str = "classifier.bin"
    label: str = "hq"
    min_score: Share = 0.0
    max_score: Share = 1.0
    newlines: Literal["blanks", "line separators are blanks", "removed"] = "blanks"
    keep: Literal["pages", "score", "label"] = "pages"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep == "label":  # the sentence of this rule alone
            object.__setattr__(self, "does", "keeps the best {keep} by the classifier {model} in the column {name}")

    @property
    def made_columns(self) -> tuple[str, ...]:
        """The column of the probability, or those of the label and its probability."""
        label = (f"{self.name}:string", f"{self.name}_probability:float")
        return {"pages": (), "score": (f"{self.name}:float",), "label": label}[self.keep]

    def contradiction(self, others: Others, stage: str) -> str | None:
        """Job 2 takes the columns of pages as they are."""
        if self.keep != "pages" and stage == "final":
            return f"{self.name} has keep = {self.keep!r} and can't stand in the stage final: put it into cleaned"
        return None

    def value(self, page: CheckedPage) -> float:
        """Returns the probability of the label; 0 if the classifier knows no word of the page."""
        scores = page.tools.lists.classifiers[self.name].classifier().scores(self._line(page))
        if self.keep == "label":
            label, best = best_label(scores)
            page.page.extra = {**page.page.extra, self.name: label, f"{self.name}_probability": best}
            return best or 0.0
        value = scores.get(self.label, 0.0)
        if self.keep == "score":
            page.page.extra = {**page.page.extra, self.name: value}
        return value

    def _line(self, page: CheckedPage) -> bytes:
        if self.newlines == "blanks" and not any(
            map(str.isspace, _end_characters(page.encoded))
        ):  # as below, without a copy
            return page.encoded
        return _NEWLINES[self.newlines](page.text.strip()).encode(errors="replace")

    def drops(self, value: float) -> bool:
        """Tells whether the probability is too small or too large."""
        return self.keep == "pages" and not self.min_score <= value <= self.max_score

    def says(self, value: float, dropped: bool, page: CheckedPage) -> str:
        """Returns the probability and the limits."""
        limits = f"{self.min_score} to {self.max_score}" if self.keep == "pages" else "a column of the corpus"
        label = page.page.extra[self.name] if self.keep == "label" else self.label
        return f"the label {label} with a probability of {value:.6f}; {limits}"

    def pinned_lists(self, languages: Sequence[str]) -> Iterable[str]:
        return (f"{CLASSIFIERS_FOLDER}/{self.model}",)

    def load_lists(self, lists: ListFolder) -> Mapping[str, Mapping[str, ClassifierModel]]:
        """Returns the model: a file in the folder `classifiers` of the lists folder, or else at its path."""
        listed = lists.path / CLASSIFIERS_FOLDER / self.model
        path = str(listed) if "://" not in self.model and listed.exists() else self.model
        option = f"--{'label' if self.keep == 'label' else 'score'} {self.name}=FILE"
        advice = (
            f"give the file of a fastText classifier (model = 'FILE' in a recipe, or {option}), or put it into "
            f"{listed.parent}, as `c4pipe lists fetch --classifier dclm` does"
        )
        named = f"recipe {lists.recipe} has the rule {self.name}, whose model {self.model}"
        with explain_errors(f"{named} can't be used", advice, errors=FILE_ERRORS):
            model, labels = ClassifierModel(path, "").with_labels()
        if self.keep != "label" and self.label not in labels:
            raise UsageError(
                f"{named} has no label {self.label!r}; it has {short(', '.join(labels), 200)}; name one "
                f"(label = 'LABEL' in a recipe, or --score {self.name}={self.model}:LABEL)"
                + suggestion(self.label, labels)
            )
        return {"classifiers": {self.name: model}}


def _end_characters(text: bytes) -> tuple[str, str]:
    """Returns the first and the last character of a text in UTF-8."""
    return text[:4].decode(errors="ignore")[:1], text[-4:].decode(errors="ignore")[-1:]


def parse_label(text: str) -> ClassifierScore:
    """Returns the rule that `NAME=MODEL` means: it drops nothing and makes the columns NAME and NAME_probability.

    Raises as `parse_score`.
    """
    name, _, model = text.partition("=")
    if not name or not model:
        raise UsageError("give NAME=MODEL, such as topic=topics.bin")
    return ClassifierScore(name, model=model, keep="label")


def parse_score(text: str) -> ClassifierScore:
    """Returns the rule that `NAME=MODEL` or `NAME=MODEL:LABEL` means: it drops nothing and makes the column NAME.

    The label is behind `.bin:` or `.ftz:`, or else behind the last colon.

    Raises UsageError for another form, and for a name that no rule can have.
    """
    name, _, rest = text.partition("=")
    usual = re.fullmatch(r"(.+?\.(?:bin|ftz))(?::(.*))?", rest)
    model, label = usual.groups("") if usual else rest.rpartition(":")[::2]
    if not model or label.startswith("//"):  # of a URL
        model, label = rest, ""
    if not name or not model:
        raise UsageError("give NAME=MODEL or NAME=MODEL:LABEL, such as high_quality=quality.bin:hq")
    return ClassifierScore(name, model=model, label=label or ClassifierScore.label, keep="score")
