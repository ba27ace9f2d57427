"""Preferences on the use of pages: the fields of robots.txt and of HTTP that state them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.wet.usage import DRAFTS, STATEMENTS, find_refusals, parse_statement, usage_of
from c4pipe.wet.warc import parse_head


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
    assert parse_statement("content-usage", value) == (None if stated is None else tuple(stated))


def test_content_signal() -> None:
    assert parse_statement("content-signal", "search=yes,ai-train=no,use=reference") == ("ai-train=no", "search=yes")
    assert parse_statement("content-signal", "AI-Train=No") == ("ai-train=no",)
    assert parse_statement("content-signal", "ai-train=n") == ()


@given(st.sampled_from([*STATEMENTS]), st.text("ab*=yn,; ()\"\\?:@%1.\t'é", max_size=40))
def test_any_text_is_read_or_is_no_dictionary(field: str, value: str) -> None:
    stated = parse_statement(field, value)
    assert stated is None or parse_statement(field, ", ".join(stated)) == stated


@pytest.mark.parametrize(
    "value", ["a=b" * 100_000, "a=(" + "b " * 100_000, "a" + ";b" * 100_000 + "?", "a=1," * 99_999]
)
def test_a_long_value_takes_linear_time(value: str) -> None:
    assert parse_statement("content-usage", value) is None


@pytest.mark.parametrize(
    ("fields", "html", "usage"),
    [
        ([], "", None),
        (["Content-Usage: train-ai=n"], "", "train-ai=n"),
        (["content-usage: train-ai=y", "Content-Usage: search=y, train-ai=n"], "", "search=y, train-ai=n"),
        (["Content-Usage: train-ai=N"], "", None),
        (["Content-Usage: no"], "", None),  # the member no=?1
        (["Content-Usage: please, don't"], "", "content-usage=?"),
        (["Content-Signal: ai-train=no, search=yes"], "", "ai-train=no, search=yes"),
        (["tdm-reservation: 1", "tdm-policy: https://example.com/p.json"], "", "tdm-reservation=1"),
        (["TDM-Reservation: yes"], "", "tdm-reservation=?"),
        (["tdm-reservation: 0", "tdm-reservation: 1"], "", "tdm-reservation=1"),
        (["tdm-reservation: 0", "tdm-reservation: 0"], "", "tdm-reservation=0"),
        (["X-Robots-Tag: noindex, noai, noimageai"], "", "noai"),
        (["X-Robots-Tag: noindex", "X-Robots-Tag: GPTBot: NoAI", "X-Robots-Tag: noai"], "", "gptbot: noai, noai"),
        (["X-Robots-Tag: max-snippet: 50, noimageai"], "", None),
        (["X-Robots-Tag: max-snippet: 50, noai"], "", "noai"),
        (["X-Robots-Tag: GPTBot: noindex, noai"], "", "noai"),  # may be two fields that a proxy joined
        ([], '<meta content="noai, noimageai" name="robots">', "noai"),
        ([], "<META NAME=Robots CONTENT=noai />", "noai"),
        ([], "<meta name='tdm-reservation' content='1'>", "tdm-reservation=1"),
        (["tdm-reservation: 1"], '<meta name="tdm-reservation" content="0">', "tdm-reservation=0"),  # TDMRep, 6
        (["tdm-reservation: 1"], '<meta name="tdm-reservation" content="none">', "tdm-reservation=1"),
        ([], '<!-- <meta name="robots" content="noai"> --><meta name="robots" content="all">', None),
        ([], '<body class="a"><meta name="robots" content="noai">', None),
        ([], '<meta name="description" content="noai">', None),
        (
            ["Content-Usage: train-ai=n", "X-Robots-Tag: noai", "TDM-Reservation: 1"],
            "",
            "train-ai=n, noai, tdm-reservation=1",
        ),
    ],
)
def test_what_a_response_states(fields: list[str], html: str, usage: str | None) -> None:
    head = parse_head("\r\n".join(["HTTP/1.1 200 OK", *fields, "", ""]).encode())
    assert head
    assert usage_of(head.fields, html.encode()) == usage


@given(st.sampled_from(["content-usage", "x-robots-tag", "tdm-reservation"]), st.text(), st.binary())
def test_any_response_is_read(field: str, value: str, html: bytes) -> None:
    usage = usage_of({field: value}, b"<meta name=robots content=" + html)
    assert usage is None or usage


@pytest.mark.parametrize(
    "html", [b"<!--" * 20_000, b"<meta " * 15_000, b"<meta name=" * 9_000, b"<meta name='" + b" " * 60_000]
)
def test_a_hostile_page_takes_linear_time(html: bytes) -> None:
    assert usage_of({"x-robots-tag": " " * 100_000 + "," * 100_000}, html) is None


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
    assert "".join(find_refusals(stated.split(", "), (usage,), draft)) == refusing


def test_the_broader_usages_are_usages_of_the_draft() -> None:
    for usages in DRAFTS.values():
        assert {*usages.values()} <= {*usages, ""}
