"""Which rule of a robots.txt decides about a URL (RFC 9309), beside a plain oracle; the entries of opt-outs."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.lists.addresses import (
    MOST_SEGMENTS,
    compared_address,
    compared_path,
    covering_entries,
    listed_forms,
    opt_out_entry,
)
from c4pipe.lists.robots import (
    SIZE_CAP,
    RobotsRule,
    decode_rules,
    encode_rules,
    matches,
    parse_robots,
    refusing_rule,
    resource_url,
    robots_url,
)
from c4pipe.wet.usage import LATEST

PATTERNS = st.text("ab*$/", max_size=8).map("/".__add__)
SHORT = st.text("a*", max_size=2).map("/".__add__)  # often of one length
PATHS = st.text("ab/", max_size=12).map("/".__add__)
NAMES = st.sampled_from(["ccbot", "CCBot/2.0", "gptbot", "*"])
LINES = st.one_of(
    NAMES.map("User-agent: {}".format),
    st.tuples(st.sampled_from(["Allow", "Disallow"]), SHORT).map(": ".join),
    st.sampled_from(["", "# comment", "Crawl-delay: 3", "no field"]),
)
STATED = st.sampled_from(["train-ai=n", "train-ai=y", "search=n, train-ai=y", "Train-AI=n", ""])
STATEMENTS = st.tuples(st.just("Content-Usage: "), st.one_of(SHORT.map("{} ".format), st.just("")), STATED).map("".join)


def oracle_matches(pattern: str, path: str) -> bool:
    """By a regular expression; `$` inside a pattern is itself, which no path here has."""
    body = pattern.removesuffix("$")
    expression = ".*".join(map(re.escape, body.split("*")))
    return re.match(expression + (r"\Z" if pattern.endswith("$") else ""), path, re.DOTALL) is not None


def oracle_allows(lines: list[str], agent: str, path: str) -> bool:
    """As RFC 9309, 2.2, says it: the rules of all groups of the agent, the longest match, then Allow."""
    rules: dict[str, list[tuple[int, bool]]] = {}
    names: list[str] = []
    in_names = False
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "User-agent":
            names = [*names, value] if in_names else [value]
            in_names = True
            rules.setdefault(value.split("/")[0].lower(), [])
        elif field in ("Allow", "Disallow"):
            in_names = False
            for name in names:
                if oracle_matches(value, path):
                    rules[name.split("/")[0].lower()].append((len(value), field == "Allow"))
    own = rules.get(agent, rules.get("*", []))
    return max(own)[1] if own else True


@given(PATTERNS, PATHS)
def test_a_pattern_matches_as_a_regular_expression_does(pattern: str, path: str) -> None:
    assert matches(pattern, path) == oracle_matches(pattern, path)


@given(st.lists(LINES, max_size=12), PATHS, st.sampled_from(["\n", "\r\n", "\r"]))
def test_the_longest_match_of_all_groups_decides(lines: list[str], path: str, end: str) -> None:
    rules = parse_robots(end.join(lines).encode(), ["ccbot", "gptbot"], Counter())
    for agent in ("ccbot", "gptbot"):
        refusing = refusing_rule(rules.get(agent, rules.get("*", ())), path, (), LATEST)
        assert (refusing is None) == oracle_allows(lines, agent, path)


@given(st.lists(st.one_of(LINES, STATEMENTS), max_size=12))
def test_rules_can_be_stored(lines: list[str]) -> None:
    rules = parse_robots("\n".join(lines).encode(), ["ccbot", "gptbot", "*"], Counter())
    assert decode_rules(encode_rules(rules)) == rules


@given(st.lists(STATEMENTS, max_size=6), PATHS)
def test_the_longest_statements_decide_and_the_strictest_of_them(lines: list[str], path: str) -> None:
    rules = parse_robots("\n".join(["User-agent: *", *lines]).encode(), ["ccbot"], Counter()).get("*", ())
    found = refusing_rule(rules, path, ("train-ai",), LATEST)
    stated = [re.fullmatch(r"Content-Usage: (/\S*)? ?(.*)", line) for line in lines]
    sizes = [(len(each[1] or ""), each[2]) for each in stated if each and oracle_matches(each[1] or "", path)]
    most = max([size for size, _ in sizes], default=0)
    assert (found is not None) == any(size == most and text == "train-ai=n" for size, text in sizes)


@given(st.text())
def test_any_url_has_one_compared_form(text: str) -> None:
    path = compared_path(f"https://example.com/{text}")
    assert path.isascii()
    assert path.startswith("/")
    assert compared_path(f"https://example.com{path}") == path


@given(st.binary(max_size=200), st.sampled_from([b"Disallow: /", b"Content-Usage: /", b"Content-Usage: train-ai=n, "]))
def test_any_bytes_are_a_robots_txt(data: bytes, start: bytes) -> None:
    rules = parse_robots(b"User-agent: *\n" + start + data, ["ccbot"], Counter())
    assert decode_rules(encode_rules(rules)) == rules


def test_what_comes_after_500_kibibytes_does_not_count() -> None:
    start = b"User-agent: *\nDisallow: /a\n"
    filled = start + b"#" * (SIZE_CAP - len(start) - 20)
    assert parse_robots(filled + b"\nDisallow: /b\n", ["x"], Counter())["*"] == (
        RobotsRule("disallow", "/a"),
        RobotsRule("disallow", "/b"),
    )
    # The line that is cut in two would refuse more than it was written for.
    assert parse_robots(filled + b"\nDisallow: /" + b"b" * 20, ["x"], Counter())["*"] == (RobotsRule("disallow", "/a"),)


def test_a_pattern_of_many_wildcards_takes_linear_time() -> None:
    assert not matches("/" + "*a" * 50_000 + "b$", "/" + "a" * 100_000)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://user@EXAMPLE.com:80/a", "http://example.com/robots.txt"),
        ("https://example.com.:8443?a", "https://example.com:8443/robots.txt"),
        ("https://bücher.example/a", "https://xn--bcher-kva.example/robots.txt"),
        ("https://straße.example/a", "https://xn--strae-oqa.example/robots.txt"),
        ("https://[::1]:8443/a", "https://[::1]:8443/robots.txt"),
        ("ftp://example.com/a", ""),
        ("https:///a", ""),
        ("example.com", ""),
    ],
)
def test_the_robots_txt_of_a_url(url: str, expected: str) -> None:
    assert robots_url(url) == expected
    assert resource_url(robots_url(url)) == expected


NO_HOSTS = [
    "*.example.com",
    ".example.com",
    '"example.com"',
    "a.com,b.com",
    "a.com;b.com",
    "<a.com>",
    "a..b",
    "a b.com",
]


@pytest.mark.parametrize("entry", ["/blog", "example.com/a?b=c", "example.com" + "/a" * 17, "https://", *NO_HOSTS])
def test_an_entry_that_is_no_host_with_a_path(entry: str) -> None:
    with pytest.raises(ValueError, match="it"):
        opt_out_entry(entry)


EQUAL = [
    ("https://bücher.example/x", "https://xn--bcher-kva.example/x"),
    ("https://straße.example/", "http://www.xn--strae-oqa.example"),
    ("https://Example.COM/Page", "https://example.com/Page"),
    ("HTTPS://example.com/b", "https://example.com/b/"),
    ("https://example.com/café", "https://example.com/caf%c3%A9"),
    ("https://example.com/a~b", "https://example.com/a%7Eb"),
    ("https://example.com:443/port", "http://example.com:80/port"),
    ("https://example.com/frag#top", "https://example.com/frag"),
    ("https://example.com./dot", "https://example.com/dot"),
    ("https://example.com/a/../b/./c", "https://example.com/b/c"),
    ("https://me@example.com/", "https://example.com"),
    ("N/A", "N/A/"),
]
OTHERS = [
    ("https://straße.example/", "https://strasse.example/"),
    ("https://example.com/p?ref=1", "https://example.com/p?ref=2"),
    ("https://example.com/p?utm_source=a", "https://example.com/p"),
    ("https://example.com/Page", "https://example.com/page"),
    ("https://example.com/a%2Fb", "https://example.com/a/b"),
    ("https://example.com:8080/", "https://example.com/"),
    ("https://example.com/?u=a/", "https://example.com/?u=a"),
    ("file:a.jsonl#1", "file:a.jsonl#2"),
    ("dQw4w9.gXcQ", "dqw4w9.gxcq"),
    ("urn:a", "urn:A"),
    ("example.com/a", "https://example.com/a"),  # an entry of a list means both: `listed_forms`
]


@pytest.mark.parametrize(
    ("one", "other", "equal"), [*((*each, True) for each in EQUAL), *((*each, False) for each in OTHERS)]
)
def test_which_addresses_are_equal(one: str, other: str, equal: bool) -> None:
    assert (compared_address(one) == compared_address(other)) is equal


@pytest.mark.parametrize(
    ("entry", "page", "listed"),
    [
        *((*each, True) for each in EQUAL),
        *((*each, False) for each in OTHERS[:-1]),
        ("Example.com/Page", "https://example.com/Page", True),
        ("https://www.example.com/a/", "example.com/a", True),
        ("<https://example.com/a>", "https://example.com/a", True),
        ('"https://example.com/a"', "https://example.com/a", True),
        ("<urn:uuid:1>", "<urn:uuid:1>", True),
        ("Doc.1", "doc.1", False),
    ],
)
def test_what_an_entry_means(entry: str, page: str, listed: bool) -> None:
    assert (compared_address(page) in listed_forms(entry)) is listed


@given(st.text())
def test_any_text_has_one_compared_form(text: str) -> None:
    for address in (text, f"https://{text}"):
        assert compared_address(address) in listed_forms(address)


@given(st.lists(st.sampled_from(["a", "b", "example"]), min_size=1, max_size=5), st.text("ab/", max_size=30))
def test_an_entry_covers_its_own_urls_and_those_below(labels: list[str], path: str) -> None:
    entry = opt_out_entry(f"{'.'.join(labels)}/{path.strip('/')}") if path.count("/") < MOST_SEGMENTS else ""
    if entry:
        assert entry in covering_entries(f"https://{entry}")
        assert entry in covering_entries(f"http://www.{entry}/more?query")
        assert entry not in covering_entries(f"http://www{entry}x")
