"""User, password, signatures and tokens of URLs stand in no log, message, note, manifest, cache or report."""

import base64
from itertools import chain
from pathlib import Path

import pytest

from c4pipe.cli import main
from c4pipe.errors import C4pipeError, hide_secrets
from tests.helpers.crawls import LISTS, SAMPLES
from tests.helpers.web import serve


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://me:pass@h/a.wet.gz: no", "http://***@h/a.wet.gz: no"),
        ("https://token@h:8/a?b=c", "https://***@h:8/a?b=c"),
        ("http://a@b:c@h/x", "http://***@h/x"),
        (
            "'s3://h/a?X-Amz-Credential=A%2F&X-Amz-Signature=ab%2Fc'",
            "'s3://h/a?X-Amz-Credential=***&X-Amz-Signature=***'",
        ),
        ("http://h/a?x-amz-security-token=1&d=2#f", "http://h/a?x-amz-security-token=***&d=2#f"),
        ("http://h/a?sv=2020&sig=abc%3D b", "http://h/a?sv=2020&sig=*** b"),
        ("http://h/a?GoogleAccessId=x&Signature=y", "http://h/a?GoogleAccessId=x&Signature=***"),
        ("http://h/a?Policy=x&Key-Pair-Id=y&api_key=z", "http://h/a?Policy=***&Key-Pair-Id=***&api_key=***"),
        ("http://h/a?download=true&monkey=1&design=2", "http://h/a?download=true&monkey=1&design=2"),
        ("http://h/a?sig=a:b: no, http://h/?sig=c; no", "http://h/a?sig=***: no, http://h/?sig=***; no"),
        ("http://h/@me/a?u=b@c", "http://h/@me/a?u=b@c"),
        ("abfss://box@account/a?sig=b", "abfss://box@account/a?sig=***"),
        ("abfs://me:pass@account/a and abfss://box@me:pass@h", "abfs://***@account/a and abfss://***@h"),
        ("abfss://box@account:443/a@b:c@d", "abfss://box@account:443/a@b:c@d"),
        *((f"{scheme}://me:pass@h/a", f"{scheme}://***@h/a") for scheme in ("wasbs", "az", "sftp", "hdfs", "gs")),
        ("me:pass@h is no address", "me:pass@h is no address"),
        (f"{Path('https://me:pass@h/x?token=a')} is no folder", "https:/***@h/x?token=*** is no folder"),
        ("C:/me@home/a and s3:/b/a@c", "C:/me@home/a and s3:/b/a@c"),
    ],
)
def test_secrets_are_hidden(text: str, shown: str) -> None:
    assert hide_secrets(text) == shown
    assert str(C4pipeError(text)) == shown


@pytest.mark.parametrize(
    "option",
    ["--output", "--work", "--cache", "--lists", "--links", "--recipe", "--language-model", "--log", "--annotate"],
)
@pytest.mark.parametrize(
    "address", ["https://me:verysecret@127.0.0.1:9/x", "s3://me:verysecret@bucket/x", "abfs://me:verysecret@box/x"]
)
def test_secrets_in_the_address_of_an_option(
    option: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = {"--lists": str(LISTS), "--output": "corpus", "--workers": "1", option: address}
    assert main.main(["build", str(SAMPLES[0]), *chain.from_iterable(options.items())]) in (1, 2)
    printed = capsys.readouterr()
    assert "***@" in printed.err
    assert "verysecret" not in printed.out + printed.err
    assert list(tmp_path.rglob("*verysecret*")) == []


def test_a_store_has_no_user_and_password(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for url in ("s3://me:verysecret@bucket/a.warc.wet.gz", "gs://me:verysecret@bucket/folder/"):
        assert main.main(["build", url, "--lists", str(LISTS), "--output", str(tmp_path / "corpus")]) == 2
        assert "the address of a store has no user and password; give them in " in capsys.readouterr().err


def test_secrets_are_sent_and_stand_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "?X-Amz-Signature=verysecret"
    served = {f"{SAMPLES[0].name}{query}": SAMPLES[0].read_bytes()}
    with serve(served, lambda path, number: "503" if not number else None) as web:
        url = web.url.replace("//", "//me:verysecret@")
        inputs = [f"{url}/{SAMPLES[0].name}{query}", f"{url}/gone.warc.wet.gz{query}"]
        options = ["--lists", str(LISTS), "--workers", "1", "--cache", str(tmp_path / "cache")]
        options += ["--log", str(tmp_path / "log")]
        assert main.main(["build", *inputs, *options, "--output", str(tmp_path / "corpus")]) == 3
        assert main.main(["build", f"{url}/.none?sig=verysecret", *options, "--output", str(tmp_path / "no")]) == 2
    assert base64.b64encode(b"me:verysecret").decode() in web.received[0]
    printed = capsys.readouterr()
    missing = (tmp_path / "corpus" / "manifest.json").read_text()
    assert "gone.warc.wet.gz?X-Amz-Signature=***: HTTP status 404" in missing
    assert "/.none?sig=***'" in printed.err
    assert "verysecret" not in printed.out + printed.err
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in tmp_path.rglob("*") if "verysecret" in path.name] == []
    assert [path for path in written if b"verysecret" in path.read_bytes()] == []
