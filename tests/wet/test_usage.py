"""Preferences on the use of pages: the fields of robots.txt and of HTTP that state them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.wet.usage import DRAFTS, STATEMENTS, find_refusal, parse_statement


@pytest.mark.parametrize(
    ("value", "stated"),
    [
        ("train-ai=n", ["train-ai=n"]),
        ("train-ai=y, search=n", ["search=n", "train-ai=y"]),
        (" search=n\t,\ttrain-ai=y ", ["search=n", "train-ai=y"]),
        ("", []),
        # draft-ietf-aipref-vocab-07, 6.5.1 and 6.5.2
        ('train-ai=y, train-ai, search=n, search="n"', []),
        ("train-ai;allow=n, train-ai=y", ["train-ai=y"]),
        ('train-ai;has;parameters="?"', []),
        # RFC 9651, 3.2: values of all types, which are no preference
        ('a="x, train-ai=n", b=(train-ai "n" 1.5;p=?1);q, c=-3, d=:Zm9v:, e=@1659578233, f=%"%c3%bc", g=?0, h', []),
        ("a=(1 2), train-ai=n;q=(1)", None),
        ("train-ai=N, search=no", []),
        ("Train-AI=n", None),
        ("train-ai=n,", None),
        ("train-ai = n", None),
        ("train-ai=n; search=n", ["train-ai=n"]),
        ("train-ai:n", None),
        ("no training", None),
        ('a="open', None),
        ("a=1234567890123456", None),
        ("ä=n", None),
    ],
)
def test_a_dictionary_of_structured_fields(value: str, stated: list[str] | None) -> None:
    assert parse_statement("Content-Usage", value) == (None if stated is None else tuple(stated))


def test_content_signal() -> None:
    assert parse_statement("Content-Signal", "search=yes,ai-train=no,use=reference") == ("ai-train=no", "search=yes")
    assert parse_statement("Content-Signal", "AI-Train=No") == ("ai-train=no",)
    assert parse_statement("Content-Signal", "ai-train=n") == ()


@given(st.sampled_from([*STATEMENTS]), st.text("ab*=yn,; ()\"\\?:@%1.\t'é", max_size=40))
def test_any_text_is_read_or_is_no_dictionary(field: str, value: str) -> None:
    stated = parse_statement(field, value)
    assert stated is None or parse_statement(field, ", ".join(stated)) == stated


@pytest.mark.parametrize(
    "value", ["a=b" * 100_000, "a=(" + "b " * 100_000, "a" + ";b" * 100_000 + "?", "a=1," * 99_999]
)
def test_a_long_value_takes_linear_time(value: str) -> None:
    assert parse_statement("Content-Usage", value) is None


@pytest.mark.parametrize(
    ("stated", "usage", "draft", "refusing"),
    [
        ("train-ai=n", "train-ai", "aipref-05", "train-ai=n"),
        ("train-ai=n", "search", "aipref-05", ""),
        ("train-ai=y", "train-ai", "aipref-05", ""),
        ("ai-train=no", "train-ai", "aipref-05", "ai-train=no"),
        ("ai-input=no", "ai-input", "aipref-05", "ai-input=no"),
        ("train-ai=y, ai-train=no", "train-ai", "aipref-05", "ai-train=no"),  # the strictest statement
        ("bots=n", "train-ai", "aipref-05", ""),
        ("bots=n", "train-ai", "aipref-04", "bots=n"),
        ("bots=n, train-ai=y", "train-ai", "aipref-04", ""),
        ("bots=n", "search", "aipref-04", "bots=n"),
        ("bots=n, ai-output=y", "search", "aipref-04", ""),
        ("ai-output=n", "train-ai", "aipref-04", ""),
    ],
)
def test_what_refuses_a_usage(stated: str, usage: str, draft: str, refusing: str) -> None:
    found = find_refusal(stated.split(", "), (usage,), draft)
    assert found == ((usage, refusing) if refusing else None)


def test_the_broader_usages_are_usages_of_the_draft() -> None:
    for usages in DRAFTS.values():
        assert {*usages.values()} <= {*usages, ""}
