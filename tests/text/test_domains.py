"""The domain of a URL, beside tldextract, by which TensorFlow Datasets finds it."""

import json
from pathlib import Path

import pytest
import tldextract

from c4pipe.text.hashes import normalise_url
from c4pipe.text.urls import has_listed_domain
from tests.helpers.hostile_urls import hostile_urls

Domains = dict[str, list[str] | bool]
SHORT: Domains = {
    "example.com": ["kitchen", "press"],
    "example.org": True,
    "example.co.uk": True,
    "bbc.co.uk": ["news"],
}


def is_realnews(url: str, domains: Domains, extract: tldextract.TLDExtract) -> bool:
    """As TensorFlow Datasets, c4 3.1.0, decides it."""
    parts = extract(normalise_url(url, "anywhere"))
    allowed = domains.get(f"{parts.domain}.{parts.suffix}")
    return allowed is True or (allowed is not None and parts.subdomain in allowed)  # type: ignore[operator]


def differing(urls: list[str], domains: Domains) -> list[str]:
    extract = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())
    ours = {name: [] if subdomains is True else subdomains for name, subdomains in domains.items()}
    theirs = [is_realnews(url, domains, extract) for url in urls]
    assert 0 < sum(theirs) < len(urls)
    return [
        url
        for url, listed in zip(urls, theirs, strict=True)
        if has_listed_domain(normalise_url(url, "anywhere"), ours, any_case=False) != listed  # type: ignore[arg-type]
    ]


def test_hostile_urls_have_the_domain_that_tldextract_finds() -> None:
    assert differing([*hostile_urls(list(SHORT), 20_000)], SHORT) == []


def test_hostile_urls_of_the_list_of_realnews(web_data: Path) -> None:
    domains = json.loads((web_data / "lists/realnews/domain_to_allowed_subdomains.json").read_text())
    plain = [f"http://{start}{name}/a" for name in domains for start in ("", "www.", "news.")]
    assert differing([*plain, *hostile_urls(sorted(domains), 20_000, seed=1)], domains) == []


@pytest.mark.parametrize("url", ["NEWS.Example.org/a", "HTTP://example.ORG", "ftp://example.org."])
def test_capitals_are_small_letters_where_a_recipe_says_so(url: str) -> None:
    assert has_listed_domain(url, {"example.org": []}, any_case=True)
    assert has_listed_domain(url, {"example.org": []}, any_case=False) == url.islower()
