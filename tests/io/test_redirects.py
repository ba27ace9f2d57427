"""Redirects of real servers: followed by all that reads a URL, and nothing secret leaves the server that it is for."""

import datetime
import gzip
import ipaddress
import ssl
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from c4pipe.cli import main
from c4pipe.io.downloads import DownloadError
from c4pipe.io.streams import InputOpener
from c4pipe.lists import fetch_lists, pinned_lists
from c4pipe.read import documents
from c4pipe.wet.inputs import Selection, find_inputs
from tests.helpers.crawls import CRAWL, LISTS, QUICK, SAMPLES
from tests.helpers.web import serve


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The context of a server with a certificate for 127.0.0.1, which this process trusts meanwhile."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now, address = datetime.datetime.now(datetime.timezone.utc), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(days=1))
    made = made.add_extension(x509.SubjectAlternativeName([address]), critical=True)
    pem = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "both.pem").write_bytes(pem + secret)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "both.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    return context


def read(url: str) -> bytes:
    return InputOpener(QUICK).read(url)


@pytest.mark.parametrize("target", ["/there", "there", "?there", "{url}/there", "//{host}/there", "/caf\u00e9 x"])
def test_a_redirect_is_followed(target: str) -> None:
    with serve({"there": b"text", "a?there": b"text", "caf%C3%A9%20x": b"text"}) as web:
        web.redirects["a"] = target.format(url=web.url, host=web.url.removeprefix("http://")).encode().decode("latin-1")
        assert read(f"{web.url}/a") == b"text"


@pytest.mark.parametrize("count", [5, 6])
def test_five_redirects_at_most(count: int) -> None:
    with serve({"0": b"text"}) as web:
        web.redirects.update({str(number): f"/{number - 1}" for number in range(1, count + 1)})
        if count == 5:
            assert read(f"{web.url}/5") == b"text"
            return
        with pytest.raises(DownloadError, match="/6: the server redirects more than 5 times"):
            read(f"{web.url}/6")
        assert web.asked.total() == 6


@pytest.mark.parametrize("target", ["http://[", "ftp://h/a", "file:///etc/passwd", "http://h:port/"])
def test_a_redirect_to_no_web_address(target: str) -> None:
    with serve({}) as web:
        web.redirects["a"] = target
        with pytest.raises(DownloadError, match="which is no address"):
            read(f"{web.url}/a")
        assert web.asked == {"a": 1}


def test_a_cut_file_behind_a_redirect_is_read_on() -> None:
    data = bytes(range(256)) * 400
    with serve({"there": data}, lambda path, number: "cut" if path == "there" and not number else None) as web:
        web.redirects["a"] = "/there"
        assert read(f"{web.url}/a") == data
        assert web.asked == {"a": 2, "there": 2}


def test_redirects_between_https_and_http(tls: ssl.SSLContext) -> None:
    with serve({"there": b"text"}, tls=tls) as safe, serve({"there": b"text"}) as plain:
        assert read(f"{safe.url}/there") == b"text"
        plain.redirects["up"], safe.redirects["down"] = f"{safe.url}/there", f"{plain.url}/there"
        assert read(f"{plain.url}/up") == b"text"
        plain.redirects["both"] = f"{safe.url}/down"
        for url in (f"{safe.url}/down", f"{plain.url}/both"):
            with pytest.raises(DownloadError, match="redirects from https:// to http://, which is not encrypted"):
                read(url)
        assert plain.asked["there"] == 0


def test_user_password_and_signature_go_to_no_other_server() -> None:
    with serve({"there": b"text"}) as web, serve({"there": b"text"}) as other:
        web.redirects = {
            "near?signature=abc": "/there",
            "far?signature=abc": f"{other.url}/there",
            "user?signature=abc": other.url.replace("//", "//eve:secret@") + "/there",
        }
        url = web.url.replace("//", "//me:se%3Acret@")
        assert read(f"{url}/near?signature=abc") == b"text"
        assert [text.count("authorization: Basic bWU6c2U6Y3JldA==") for text in web.received] == [1, 1]
        for path in ("far", "user"):
            assert read(f"{url}/{path}?signature=abc") == b"text"
        assert len(other.received) == 2
        assert not any(word in text for text in other.received for word in ("uthorization", "Referer", "abc"))


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve({"http://h.example.com/a": b"text"}) as proxy, serve({"a": b"near"}) as web:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//me:secret@"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert read("http://h.example.com/a") == b"text"
        assert read(f"{web.url}/a") == b"near"
    assert "proxy-authorization: Basic bWU6c2VjcmV0" in proxy.received[0]


def test_inputs_behind_redirects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A list of a crawl, WET files, Parquet and corpora are read through redirects to another server."""
    paths = {f"crawl-data/{CRAWL}/wet/{path.name}": path.read_bytes() for path in SAMPLES[:2]}
    listing = f"crawl-data/{CRAWL}/wet.paths.gz"
    files = {**paths, listing: gzip.compress("\n".join(paths).encode())}
    pq.write_table(pa.table({"text": ["A text."]}), tmp_path / "t.parquet")
    files["t.parquet"] = (tmp_path / "t.parquet").read_bytes()
    with serve(files) as behind, serve({}) as front:
        front.redirects = {path: f"{behind.url}/{path}" for path in files}
        found = find_inputs([CRAWL], Selection(source=front.url))
        assert [file.path for file in found] == [f"{front.url}/{path}" for path in paths]
        build = ["build", CRAWL, "--source", front.url, "--lists", str(LISTS), "--workers", "1", "--quiet"]
        assert main.main([*build, "--output", str(tmp_path / "c")]) == 0
        command = ["import", f"{front.url}/t.parquet", "--url-column", "none", "--workers", "1", "--quiet"]
        assert main.main([*command, "--recipe", "as-is", "--output", str(tmp_path / "i")]) == 0
    corpus = {f"c/{path.relative_to(tmp_path / 'c')}": path.read_bytes() for path in (tmp_path / "c").rglob("*.*")}
    with serve(corpus) as behind, serve({}) as front:
        front.redirects = {path: f"{behind.url}/{path}" for path in corpus}
        texts = [document["text"] for document in documents(f"{front.url}/c/en")]
        assert texts == [document["text"] for document in documents(tmp_path / "c" / "en")]
    assert capsys.readouterr().err == ""


def test_lists_behind_redirects(tmp_path: Path) -> None:
    pinned = pinned_lists.PINNED[0]
    with serve({"there": b"other"}) as web:
        web.redirects[pinned.url] = "/there"
        with pytest.raises(Exception, match="SHA-256 of its 5 bytes"):
            fetch_lists.fetch(tmp_path, web.url, lists=[pinned])
