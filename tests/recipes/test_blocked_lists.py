"""The user's lists of blocked domains, URLs and words: how they are read, and what a corpus built with them lacks."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tldextract

from c4pipe.clean.text_cleaner import Cleaner
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.errors import UsageError
from c4pipe.lists.lists import Lists, find_lists, has_key, link_keys
from c4pipe.recipes.choose import gather_lists
from c4pipe.recipes.presets import find_recipe
from c4pipe.text.hashes import normalise_url, url_key
from c4pipe.text.urls import PublicSuffixes, host_of, suffix_rules
from tests.helpers.commands import refusal
from tests.helpers.corpora import rows_of
from tests.helpers.hostile_urls import hostile_urls

ROOT = Path(__file__).parents[2]
EXAMPLE = find_recipe(str(ROOT / "examples" / "recipes" / "fineweb_urls.toml"))
SNAPSHOT = Path(tldextract.__file__).with_name(".tld_set_snapshot").read_text(encoding="utf-8")
ALL = "blocked_domain", "blocked_url", "banned_url_word", "soft_banned_url_words", "banned_url_subword"
FILES = {
    "public_suffix_list.dat": "// a list\ncom\norg\nnet\n// ===BEGIN PRIVATE DOMAINS===\nexample.org\n",
    "adult/domains": "# of UT1\nshop.example.com\nexample.net\n\n",
    "gambling/domains": "press.example.com\n127.0.0.1\n",
    "urls": "https://kitchen.example.com/bread/plain-white-loaf\n",
    "banned_words.txt": "Rowing\n",
    "soft_banned_words": "night\ntrain\n",
    "banned_subwords": "zeit-ung\n",
}


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """A lists folder with all lists of the rules."""
    for name, text in FILES.items():
        path = tmp_path / "lists" / "blocked" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "lists"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe file of all URL rules and no other filter."""
    path = tmp_path / "mine.toml"
    path.write_text(f'base = "unfiltered"\non = {list(ALL)}\n'.replace("'", '"'))
    return path


def registered(url: str, extract: tldextract.TLDExtract) -> tuple[str, str]:
    """The registered domain and the host with one, as datatrove takes them."""
    parts = extract(url)
    return parts.top_domain_under_public_suffix, parts.fqdn


def test_registered_domains_are_those_of_tldextract() -> None:
    ours = PublicSuffixes(suffix_rules(SNAPSHOT))
    extract = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())
    suffixes = sorted({rule.lstrip("!*.") for rule in suffix_rules(SNAPSHOT)})
    urls = [f"http://{start}{suffix}/" for suffix in suffixes for start in ("", "b.", "a.b.", "a..")]
    urls += [f"http://a.b.{suffix.encode('idna').decode()}" for suffix in suffixes if not suffix.isascii()]
    urls += hostile_urls(["example.com", "example.co.uk", "a.b.ck", "www.ck", "例.公司.香港", "b.kobe.jp"], 10_000)
    differing = []
    for url in urls:
        host = host_of(url)
        domain = ours.registered_domain(host)
        # tldextract leaves out the dot before a host name that begins with one
        whole = domain if host == f".{domain}" else host
        if (domain, whole if domain else "") != registered(url, extract):
            differing.append(url)
    assert len(urls) > 30_000
    assert differing == []


def test_lists_in_all_forms_of_files_are_one(lists: Path) -> None:
    folder = lists / "blocked"
    (folder / "domains.gz").write_bytes(gzip.compress(b"zipped.example.com\r\n"))
    (folder / "domains.txt").write_text("\ufefffirst.example.com\n")
    made = gather_lists(EXAMPLE, lists, ())
    names = ["shop.example.com", "example.net", "press.example.com", "127.0.0.1", "zipped.example.com"]
    assert made.blocked_domains.tolist() == sorted(map(url_key, [*names, "first.example.com"]))
    assert made.public_suffixes == ["com", "net", "org"]
    assert made.url_words == {
        "banned_words": ["rowing"], "soft_banned_words": ["night", "train"], "banned_subwords": ["zeitung"],
    }  # fmt: skip


def test_keys_of_two_million_domains_take_16_megabytes(lists: Path) -> None:
    keys = np.arange(2_000_000, dtype=np.uint64)
    many = Lists(blocked_domains=keys)
    assert many.blocked_domains.nbytes == 16_000_000
    assert (has_key(many.blocked_domains, 1_999_999), has_key(many.blocked_domains, 2_000_000)) == (True, False)


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def write(name: str, data: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (remove("urls"), ["blocked_url", "urls", "--lists DIR"]),
        (remove("banned_words.txt"), ["banned_url_word", "banned_words", "--lists DIR"]),
        (remove("public_suffix_list.dat"), ["blocked_domain", "https://publicsuffix.org/"]),
        (write("public_suffix_list.dat", b"// nothing\n"), ["no suffix", "https://publicsuffix.org/"]),
        (write("public_suffix_list.dat", b"\xff"), ["public_suffix_list.dat", "https://publicsuffix.org/"]),
        (write("urls", b"# nothing\n\n"), ["blocked_url", "no entry"]),
        (write("banned_subwords", b"---\n"), ["banned_url_subword", "letter"]),
        (write("urls.gz", b"no gzip"), ["urls.gz", "one entry a line"]),
    ],
    ids=["urls", "words", "suffixes", "no suffix", "no text", "no entry", "no letter", "no gzip"],
)
def test_a_list_that_is_missing_or_wrong_is_said_before_any_work(
    change: Callable[[Path], None],
    says: list[str],
    lists: Path,
    recipe: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(lists / "blocked")
    command = ["build", ROOT / "samples" / "crawl", "--recipe", recipe, "--lists", lists]
    said = refusal(capsys, *command, "--output", tmp_path / "corpus")
    assert [each for each in says if each not in said] == []
    assert not (tmp_path / "corpus").exists()


def is_blocked(url: str) -> bool:
    """Whether one of the lists of FILES has a URL of the samples, by simple means."""
    host = url.split("/")[2]
    return (
        host in ("shop.example.com", "press.example.com", "example.net")
        or host.endswith(".example.net")
        or url == FILES["urls"].strip()
        or "rowing" in re.split("[^a-zA-Z0-9]", url)
        or {"night", "train"} <= set(re.split("[^a-zA-Z0-9]", url))
        or "zeitung" in url
    )


def test_a_corpus_lacks_what_is_blocked(
    lists: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "corpus"
    command = ["build", str(ROOT / "samples/crawl"), "--recipe", str(recipe), "--quiet", "--workers", "1"]
    unfiltered = [each if each != str(recipe) else "unfiltered" for each in command]
    assert main.main([*command, "--lists", str(lists), "--output", str(corpus)]) == 0
    made = manifest.read_manifest(corpus)
    assert made is not None
    counts = made["counts"]
    assert [rule for rule in ALL if not counts.get(f"pages.dropped.{rule}")] == []
    assert main.main([*unfiltered, "--lists", str(lists), "--output", str(tmp_path / "all")]) == 0
    before, after = ({row["url"] for row in rows_of(each)} for each in (tmp_path / "all", corpus))
    assert before - after == {url for url in before if is_blocked(url)}
    assert after < before
    digests = gather_lists(find_recipe(str(recipe)), lists, ()).digests
    assert set(digests) == {"blocked_domains", "blocked_urls", "public_suffixes", "url_words"}
    assert made["fingerprint"] == find_recipe(str(recipe)).fingerprint(digests)
    assert find_lists([corpus / "_work"], digests).digests == digests
    card, report = ((corpus / name).read_text(encoding="utf-8") for name in ("README.md", "report.html"))
    assert [rule for rule in ALL if rule not in card or rule not in report] == []
    assert "lists of domains, URLs or words that were given" in card
    capsys.readouterr()
    url = "https://travel.example.com/stories/night-train-to-the-coast?id=17"
    wet = next((ROOT / "samples" / "crawl").glob("*-00000.warc.wet.gz"))
    assert main.main(["explain", str(wet), "--url", url, "--recipe", str(recipe), "--lists", str(lists)]) == 0
    shown = capsys.readouterr().out
    assert "soft_banned_url_words" in shown
    assert '2 soft-banned words: "night", "train"' in " ".join(shown.split())
    assert main.main(["diff", str(tmp_path / "all"), str(corpus), "--json"]) == 0
    differing = json.loads(capsys.readouterr().out)
    assert [rule for rule in ALL if rule not in json.dumps(differing)] == []


def test_a_cleaner_needs_the_url(lists: Path, recipe: Path) -> None:
    cleaner = Cleaner(recipe, lists=lists)
    assert cleaner("Some text.", url="https://a.example.net/").reason == "blocked_domain"
    assert cleaner("Some text.", url="https://a.example.org/").kept
    with pytest.raises(UsageError, match="give url="):
        cleaner("Some text.")
    assert "example.net is blocked" in str(cleaner.explain("Some text.", url="https://a.example.net/").rules)


def test_capitals_of_a_host_count_where_a_recipe_says_so(lists: Path, recipe: Path) -> None:
    recipe.write_text(recipe.read_text() + "any_case = true\n")
    assert Cleaner(recipe, lists=lists)("Some text.", url="https://EXAMPLE.net/").reason == "blocked_domain"


def test_links_have_no_comments(tmp_path: Path) -> None:
    urls = ["http://a.example/ #top", "#u@b.example", "http://c.example/"]
    (tmp_path / "links.txt").write_text("".join(f"  {url}\n\n" for url in urls))
    keys = link_keys([tmp_path / "links.txt"], "start")
    assert keys.tolist() == sorted(url_key(normalise_url(url)) for url in urls)
