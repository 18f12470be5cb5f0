"""Data files: found, downloaded, unpacked, refused; and nothing half-written stays behind."""

from __future__ import annotations

import errno
import importlib
import io
import logging
import lzma
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import openpyxl
import pooch
import pytest
from rich.console import Console

from spgls.datasets import (
    DataFileError,
    _blog,
    _building,
    _insurance,
    _source,
    _wine,
    load_blog_feedback,
    load_insurance,
    load_residential_building,
    load_wine_quality,
)
from spgls.datasets._source import csv_table, digest

LOAD = {
    "wine": load_wine_quality,
    "building": load_residential_building,
    "blog": load_blog_feedback,
}
SOURCE = {"wine": _wine.WINE, "building": _building.BUILDING, "blog": _blog.BLOG}
NAME = {key: source.download_name for key, source in SOURCE.items()}
ROWS = 4
every = pytest.mark.parametrize("name", LOAD)


def zipped(**members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member.replace("__", "."), content)
    return packed.getvalue()


def workbook(table):
    book = openpyxl.Workbook()
    for row in ([["PROJECT DATES"], ["START YEAR"]]) + [list(row) for row in table]:
        book.active.append(row)
    book.create_sheet("Descriptions").append(["V-1", "locality"])
    packed = io.BytesIO()
    book.save(packed)
    return packed.getvalue()


WINE = b"a;b\n" + b"\n".join(b"%d;" % k * 11 + b"%d" % (k + 3) for k in range(ROWS)) + b"\n"
BLOG = b"\n".join(b"%d.5," % k * 280 + b"%d" % k for k in range(ROWS)) + b"\n"
BLOG_ZIP = zipped(blogData_train__csv=BLOG, blogData_test__csv="1,2\n")
TABLE = np.arange(ROWS * 109.0).reshape(ROWS, 109)
BUILDING = workbook(TABLE)
CONTENT = {"wine": WINE, "building": BUILDING, "blog": BLOG_ZIP}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Pin the hashes and sizes of small files, and forget what the environment names."""
    for name in ("SPGLS_DATA", "SPGLS_CACHE", "SPGLS_UCI_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    wine = partial(csv_table, delimiter=";", header=1, shape=(ROWS, 12))
    monkeypatch.setattr(_wine, "WINE", replace(_wine.WINE, sha256=digest(WINE), parse=wine))
    blog = partial(csv_table, delimiter=",", header=0, shape=(ROWS, 281))
    monkeypatch.setattr(
        _blog,
        "BLOG",
        replace(_blog.BLOG, sha256=digest(BLOG), archive_sha256=digest(BLOG_ZIP), parse=blog),
    )
    monkeypatch.setattr(_building, "ROWS", ROWS)
    sums = {"V-9": TABLE[:, 107].sum(), "V-10": TABLE[:, 108].sum()}
    monkeypatch.setattr(_building, "SUMS", sums)
    monkeypatch.setattr(_building, "CELLS", _building.fingerprint(TABLE))


class Archive:
    """An archive on this machine that keeps to the paths of the real one."""

    def __init__(self):
        self.files = {f"/{SOURCE[key].archive_path}": CONTENT[key] for key in CONTENT}
        self.requests = []
        self.missing_bytes = 0
        self.length_told = True
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.path)
                content = outer.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                if outer.length_told:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) - outer.missing_bytes])

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def send(self, key, content):
        self.files[f"/{SOURCE[key].archive_path}"] = content

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def archive():
    serving = Archive()
    yield serving
    serving.close()


@pytest.fixture
def fetch(archive, tmp_path):
    """Load a set from the archive on this machine, by way of a cache that is empty at first."""

    def load(name, **given):
        settings = {"base_url": archive.url, "cache": tmp_path / "cache", "progress": False}
        return LOAD[name](**(settings | given))

    load.cache = tmp_path / "cache"
    load.kept = lambda: sorted(path.name for path in load.cache.glob("*"))
    return load


def expected(name):
    if name == "wine":
        return np.repeat(np.arange(4.0)[:, None], 11, axis=1), np.arange(3.0, 7.0)
    if name == "blog":
        return np.repeat(np.arange(4.0)[:, None] + 0.5, 280, axis=1), np.arange(4.0)
    return TABLE[:, :107], TABLE[:, 107]


def assert_loaded(data, name, path):
    X, y = expected(name)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.filename == str(path)


@every
def test_downloaded_once(archive, fetch, name):
    for _ in range(2):
        assert_loaded(fetch(name), name, fetch.cache / NAME[name])
    assert archive.requests == [f"/{SOURCE[name].archive_path}"]
    assert fetch.kept() == [NAME[name]]
    assert (fetch.cache / NAME[name]).read_bytes() == CONTENT[name]


@every
def test_places_from_the_environment(archive, monkeypatch, tmp_path, name):
    monkeypatch.setenv("SPGLS_UCI_URL", f"{archive.url}/")
    monkeypatch.setenv("SPGLS_CACHE", str(tmp_path / "deep" / "cache"))
    assert_loaded(LOAD[name](), name, tmp_path / "deep" / "cache" / NAME[name])


def test_the_cache_of_the_system(archive, monkeypatch, tmp_path):
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / project)
    data = load_wine_quality(base_url=archive.url)
    assert_loaded(data, "wine", tmp_path / "spgls" / "winequality-red.csv")


def test_the_archive_is_the_one_in_irvine():
    for name, source in SOURCE.items():
        assert source.page.startswith("https://archive.ics.uci.edu/dataset/")
        assert source.archive_path.startswith("ml/machine-learning-databases/"), name
    assert _insurance.INSURANCE.archive_path is None


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("wine", "winequality-red.csv", WINE),
        ("wine", "winequality-red.csv", WINE.replace(b"\n", b"\r\n")),
        ("building", "Residential-Building-Data-Set.xlsx", BUILDING),
        ("blog", "blogData_train.csv", BLOG),
        ("blog", "blogData_train.csv", BLOG.replace(b"\n", b"\r\n")),
        ("blog", "blogData_train.csv.xz", lzma.compress(BLOG)),
        ("blog", "BlogFeedback.zip", BLOG_ZIP),
        # Packed again by somebody: what is inside counts.
        ("blog", "BlogFeedback.zip", zipped(**{"folder/blogData_train__csv": BLOG})),
    ],
)
@pytest.mark.parametrize("named", ["folder", "SPGLS_DATA"])
def test_found_in_a_folder(archive, fetch, monkeypatch, tmp_path, name, file, content, named):
    (tmp_path / file).write_bytes(content)
    if named == "folder":
        # The argument goes before the environment.
        monkeypatch.setenv("SPGLS_DATA", str(tmp_path / "nowhere"))
        data = fetch(name, folder=str(tmp_path))
    else:
        monkeypatch.setenv("SPGLS_DATA", str(tmp_path))
        data = fetch(name)
    assert_loaded(data, name, tmp_path / file)
    assert archive.requests == []
    assert not fetch.cache.exists()


def test_the_plain_file_goes_before_packed_ones(fetch, tmp_path):
    (tmp_path / "BlogFeedback.zip").write_bytes(b"never opened")
    (tmp_path / "blogData_train.csv").write_bytes(BLOG)
    assert fetch("blog", folder=tmp_path).filename == str(tmp_path / "blogData_train.csv")


def test_a_file_that_had_other_line_ends(monkeypatch, tmp_path):
    unix = WINE.replace(b"\n", b"\r\n")
    monkeypatch.setattr(_wine, "WINE", replace(_wine.WINE, sha256=digest(unix)))
    (tmp_path / "winequality-red.csv").write_bytes(WINE)
    assert_loaded(load_wine_quality(tmp_path), "wine", tmp_path / "winequality-red.csv")


def test_what_the_environment_lacks_is_downloaded(archive, fetch, monkeypatch, tmp_path):
    monkeypatch.setenv("SPGLS_DATA", str(tmp_path))
    assert_loaded(fetch("wine"), "wine", fetch.cache / NAME["wine"])
    assert len(archive.requests) == 1


@every
def test_a_folder_that_lacks_the_file(archive, fetch, tmp_path, name):
    (tmp_path / SOURCE[name].names[0]).mkdir()
    with pytest.raises(FileNotFoundError) as told:
        fetch(name, folder=tmp_path)
    said = str(told.value)
    assert f"folder={str(tmp_path)!r} holds no file" in said
    assert " or ".join(SOURCE[name].names) in said
    assert f"Get {NAME[name]} from {SOURCE[name].page}, put it in a folder" in said
    assert archive.requests == []


INSURANCE = (
    b"age,sex,bmi,children,smoker,region,charges\r\n"
    b"19,female,27.9,0,yes,southwest,16884.924\r\n"
    b"18,male,33.77,1,no,southeast,50\r\n"
)


@pytest.mark.parametrize("ends", [b"\r\n", b"\n"])
def test_insurance_from_a_folder(monkeypatch, tmp_path, ends):
    pinned = replace(_insurance.INSURANCE, sha256=digest(INSURANCE))
    monkeypatch.setattr(_insurance, "INSURANCE", pinned)
    monkeypatch.setattr(_insurance, "check_table", lambda table, shape: table)
    (tmp_path / "insurance.csv").write_bytes(INSURANCE.replace(b"\r\n", ends))
    data = load_insurance(tmp_path)
    assert data.X.tolist() == [
        [19, 27.9, 0, 1, 0, 0, 1, 0, 0, 0, 1],
        [18, 33.77, 1, 0, 1, 1, 0, 0, 0, 1, 0],
    ]
    np.testing.assert_array_equal(data.y, [16884.924 / 100, 0.5])
    np.testing.assert_allclose(data.goals["2022"]["modest"](data.y), [167.84924, 0.0])


@pytest.mark.parametrize("named", [None, "SPGLS_DATA"])
def test_insurance_is_never_downloaded(monkeypatch, tmp_path, named):
    said = "Neither folder nor SPGLS_DATA names a folder that holds a file of"
    if named:
        monkeypatch.setenv("SPGLS_DATA", str(tmp_path))
        said = f"SPGLS_DATA={str(tmp_path)!r} holds no file of"
    with pytest.raises(FileNotFoundError) as told:
        load_insurance()
    assert str(told.value).startswith(f"{said} the insurance data (insurance.csv). Get")
    assert "kaggle.com/datasets/mirichoi0218/insurance" in str(told.value)
    assert str(told.value).endswith("This set is not downloaded.")


def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@every
def test_no_network_and_no_folder(fetch, name):
    with pytest.raises(ConnectionError) as told:
        fetch(name, base_url=closed_port())
    said = str(told.value)
    assert "there is no connection to the server. Nothing was kept" in said
    assert f"by hand from {SOURCE[name].page}, put {SOURCE[name].names[0]}" in said
    assert "name that folder by SPGLS_DATA or the argument folder" in said
    assert fetch.kept() == []


@every
def test_the_archive_has_no_such_file(archive, fetch, name):
    archive.files.clear()
    with pytest.raises(ConnectionError, match=r"the server answered 404 Not Found\. Nothing"):
        fetch(name)
    assert fetch.kept() == []


@every
@pytest.mark.parametrize("length_told", [True, False])
def test_a_connection_that_breaks_off(archive, fetch, name, length_told):
    archive.missing_bytes, archive.length_told = 40, length_told
    error, said = (
        (ConnectionError, "the connection broke off")
        if length_told
        else (DataFileError, f"What {archive.url}/.* sent is not the .* data: it")
    )
    with pytest.raises(error, match=f"{said}.*Nothing was kept"):
        fetch(name)
    assert fetch.kept() == []
    # And once more, with luck.
    archive.missing_bytes = 0
    assert_loaded(fetch(name), name, fetch.cache / NAME[name])


def changed(content, at=60):
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


PORTAL = b"<html>Please log in to this network</html>"
wrong_total = TABLE.copy()
wrong_total[1, 108] += 0.25
WRONG = {
    "wine-portal": ("wine", PORTAL, r"its 42 bytes have the SHA-256 \w{64}, not \w{64}\."),
    "wine-digit": ("wine", changed(WINE), r"its \d+ bytes have the SHA-256"),
    "wine-cut": ("wine", WINE[:-20], r"its \d+ bytes have the SHA-256"),
    "wine-empty": ("wine", b"", "its 0 bytes have the SHA-256"),
    "blog-portal": ("blog", PORTAL, "SHA-256|cannot be unpacked"),
    "blog-bit": ("blog", changed(BLOG_ZIP), "SHA-256|cannot be unpacked"),
    "blog-cut": ("blog", BLOG_ZIP[:-20], "SHA-256|cannot be unpacked"),
    "building-portal": ("building", PORTAL, "cannot be read as a workbook .BadZipFile"),
    "building-cut": ("building", BUILDING[:-200], "cannot be read as a workbook .BadZipFile"),
    "building-bit": ("building", changed(BUILDING, 600), "cannot be read as a workbook"),
    "building-zip": ("building", BLOG_ZIP, "cannot be read as a workbook .KeyError"),
    "building-rows": ("building", workbook(TABLE[:-1]), "it has 3 rows of 109 numbers, not 4 of"),
    "building-none": ("building", workbook(TABLE[:0]), "it has 0 rows of 109 numbers, not 4 of"),
    "building-columns": ("building", workbook(TABLE[:, 1:]), "1 of the data has 108 columns, not"),
    "building-gap": (
        "building",
        workbook(np.where(TABLE == 111.0, None, TABLE)),
        "row 2 of the data has None in column 3",
    ),
    "building-text": (
        "building",
        workbook(np.where(TABLE == 220.0, "n/a", TABLE.astype(object))),
        "row 3 of the data has 'n/a' in column 3",
    ),
    "building-cell": (
        "building",
        workbook(np.where(TABLE == 111.0, 112.0, TABLE)),
        "some of its cells have other values",
    ),
    "building-sum": ("building", workbook(wrong_total), "its column V-10 sums to .*, not"),
    "building-swapped": (
        "building",
        workbook(TABLE[:, [*range(107), 108, 107]]),
        "its column V-9 sums to",
    ),
}
wrong = pytest.mark.parametrize(("name", "content", "said"), WRONG.values(), ids=WRONG)


@wrong
def test_a_wrong_download_is_refused(archive, fetch, name, content, said):
    archive.send(name, content)
    with pytest.raises(DataFileError, match=f"^What {archive.url}/ml/.* data: .*{said}"):
        fetch(name)
    assert fetch.kept() == []


def test_a_download_that_was_packed_again_is_refused(archive, fetch):
    archive.send("blog", zipped(blogData_train__csv=BLOG))
    with pytest.raises(DataFileError, match="bytes have the SHA-256"):
        fetch("blog")
    assert fetch.kept() == []


@wrong
def test_a_wrong_file_in_a_folder_is_refused(archive, fetch, tmp_path, name, content, said):
    file = tmp_path / NAME[name]
    file.write_bytes(content)
    with pytest.raises(DataFileError, match=said) as told:
        fetch(name, folder=tmp_path)
    assert str(told.value).startswith(f"{file} is not the {SOURCE[name].title} data: ")
    assert str(told.value).endswith(f". Get it again from {SOURCE[name].page}.")
    # It is the user's.
    assert file.read_bytes() == content
    assert archive.requests == []


@wrong
def test_a_wrong_file_in_the_cache_is_replaced(archive, fetch, name, content, said):
    fetch.cache.mkdir()
    (fetch.cache / NAME[name]).write_bytes(content)
    assert_loaded(fetch(name), name, fetch.cache / NAME[name])
    assert (fetch.cache / NAME[name]).read_bytes() == CONTENT[name]
    assert len(archive.requests) == 1


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("blogData_train.csv.xz", lzma.compress(BLOG)[:-9], r"it cannot be unpacked \(Compressed"),
        ("blogData_train.csv.xz", BLOG, r"it cannot be unpacked \(Input format not supported"),
        ("blogData_train.csv.xz", lzma.compress(BLOG[:-2]), "its .* bytes have the SHA-256"),
        ("BlogFeedback.zip", BLOG_ZIP[:-9], r"it cannot be unpacked \(File is not a zip file"),
        ("BlogFeedback.zip", zipped(other__csv=BLOG), "it holds no blogData_train.csv"),
        ("BlogFeedback.zip", zipped(blogData_train__csv=WINE), "its .* bytes have the SHA-256"),
    ],
)
def test_wrong_packages_in_a_folder(tmp_path, file, content, said):
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataFileError, match=f"{file} is not the blog feedback data: {said}"):
        load_blog_feedback(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (WINE[: WINE.rindex(b"\n", 0, -1) + 1], "it has 3 rows of 12 numbers, not 4 of 12"),
        (WINE.replace(b";1;", b";nan;", 1), "row 2 of the data has nan in column 2"),
        (WINE.replace(b"1;", b"1,", 1), "could not convert|number of columns changed"),
    ],
)
def test_values_are_checked_too(monkeypatch, tmp_path, content, said):
    monkeypatch.setattr(_wine, "WINE", replace(_wine.WINE, sha256=digest(content)))
    (tmp_path / "winequality-red.csv").write_bytes(content)
    with pytest.raises(DataFileError, match=said):
        load_wine_quality(tmp_path)


def test_a_damaged_cache_without_a_network_is_told(fetch):
    fetch.cache.mkdir()
    (fetch.cache / NAME["wine"]).write_bytes(WINE[:-3])
    with pytest.raises(ConnectionError, match="could not be downloaded"):
        fetch("wine", base_url=closed_port())
    assert fetch.kept() == []


class Interrupted:
    """A download that ends half-way, with half a file under its temporary name."""

    def __init__(self, error):
        self.error = error

    def __call__(self, **_):
        def start(url, temporary, pooch):
            with open(temporary, "wb") as file:
                file.write(WINE[:30])
            raise self.error

        return start


def test_a_full_disk(fetch, monkeypatch):
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(pooch, "HTTPDownloader", Interrupted(full))
    with pytest.raises(
        OSError, match=r"could not be stored in .*: No space left on device"
    ) as told:
        fetch("wine")
    assert told.value.errno == errno.ENOSPC
    assert "Nothing was kept. Make room or name another folder with cache" in told.value.strerror
    assert fetch.kept() == []


def test_a_disk_that_is_full_when_the_file_gets_its_name(fetch, monkeypatch):
    def move(*_):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(shutil, "move", move)
    with pytest.raises(OSError, match=r"could not be stored in .*: Disk quota exceeded"):
        fetch("wine")
    assert fetch.kept() == []


def test_an_impatient_user(fetch, monkeypatch):
    monkeypatch.setattr(pooch, "HTTPDownloader", Interrupted(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        fetch("wine")
    assert fetch.kept() == []


@pytest.mark.parametrize("there", [True, False])
def test_a_cache_that_may_not_be_written(fetch, monkeypatch, there):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    if there:
        fetch.cache.mkdir()
    # As root one may write anywhere, so permissions alone would not do.
    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    monkeypatch.setattr("os.makedirs", refuse)
    with pytest.raises(PermissionError, match=r"could not be stored in .*: Permission denied\. No"):
        fetch("wine")
    assert fetch.cache.exists() == there
    assert fetch.kept() == []


def test_a_cache_below_a_file(fetch, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"could not be stored in .*: Not a directory"):
        fetch("wine", cache=tmp_path / "file" / "cache")


def test_the_library_does_not_print(fetch, capfd):
    heard = []
    listener = logging.Handler()
    listener.emit = heard.append
    logger = pooch.get_logger()
    level = logger.level
    logger.addHandler(listener)
    try:
        fetch("wine", progress=True)
    finally:
        logger.removeHandler(listener)
    assert heard == []
    assert capfd.readouterr() == ("", "")
    assert logger.level == level


@pytest.mark.parametrize("length_told", [True, False])
def test_a_terminal_sees_progress(archive, fetch, monkeypatch, length_told):
    shown = io.StringIO()

    def console(*, stderr):
        assert stderr, "the bar is drawn on the error stream"
        return Console(file=shown, force_terminal=True, width=100)

    monkeypatch.setattr("rich.console.Console", console)
    archive.length_told = length_told
    fetch("wine", progress=True)
    assert "Downloading red wine" in shown.getvalue()
    size = f"{len(WINE)}/{len(WINE)}" if length_told else "0/?"
    assert f"{size} bytes" in shown.getvalue()
    assert "/0 bytes" not in shown.getvalue()


@pytest.fixture
def without(monkeypatch):
    """Pretend that a package is not installed."""

    def forget(package):
        def load(name):
            if name.partition(".")[0] == package:
                raise ImportError(name)
            return importlib.import_module(name)

        monkeypatch.setattr(_source, "import_module", load)

    return forget


@pytest.mark.parametrize(
    ("package", "name", "given", "said"),
    [
        ("pooch", "wine", {}, r"Downloading data needs pooch\..* 'spgls\[data\]'"),
        ("rich", "wine", {"progress": True}, r"The progress bar needs rich\..* 'spgls\[data\]'"),
        (
            "openpyxl",
            "building",
            {},
            r"residential building data needs openpyxl\..*'spgls\[data\]'",
        ),
        ("pandas", "wine", {"as_frame": True}, r"as_frame=True needs pandas\..*pip install pandas"),
    ],
)
def test_a_package_that_is_missing(fetch, without, package, name, given, said):
    without(package)
    with pytest.raises(ImportError, match=said):
        fetch(name, **given)
    assert fetch.kept() == []


def test_no_bar_needs_no_rich(fetch, without):
    without("rich")
    assert_loaded(fetch("wine"), "wine", fetch.cache / NAME["wine"])


@every
@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"folder": 3}, TypeError, "folder must be the path of a folder; got 3"),
        ({"folder": ""}, TypeError, "folder must be the path of a folder; got ''"),
        ({"folder": "/no/such"}, FileNotFoundError, "folder must name a folder .*'/no/such' does"),
        ({"folder": __file__}, FileNotFoundError, "folder must name a folder .* is not a folder"),
        ({"cache": ["a"]}, TypeError, "cache must be the path of a folder; got a list"),
        ({"cache": ""}, TypeError, "cache must be the path of a folder; got ''"),
        ({"cache": __file__}, NotADirectoryError, "cache must name a folder; .* is a file"),
        ({"base_url": 5}, TypeError, "base_url must be None or an address such as https://arch"),
        ({"base_url": "ftp://a"}, ValueError, "base_url must be an address .*; got 'ftp://a'"),
        ({"progress": 1}, TypeError, "progress must be True or False; got 1"),
        ({"as_frame": "yes"}, TypeError, "as_frame must be True or False; got 'yes'"),
    ],
)
def test_bad_arguments(archive, fetch, name, given, error, said):
    with pytest.raises(error, match=said):
        fetch(name, **given)
    assert archive.requests == []


@pytest.mark.parametrize(
    ("variable", "value", "error", "said"),
    [
        ("SPGLS_DATA", "/no/such", FileNotFoundError, "SPGLS_DATA must name a folder .*'/no/such'"),
        ("SPGLS_CACHE", __file__, NotADirectoryError, "SPGLS_CACHE must name a folder"),
        ("SPGLS_UCI_URL", "file:///etc", ValueError, "SPGLS_UCI_URL must be an address such as"),
    ],
)
def test_bad_environment(archive, monkeypatch, variable, value, error, said):
    monkeypatch.setenv(variable, value)
    with pytest.raises(error, match=said):
        load_wine_quality(base_url=None if variable == "SPGLS_UCI_URL" else archive.url)
    assert archive.requests == []


def test_nothing_heavy_is_imported_before_it_is_used():
    code = (
        "import sys, spgls; assert 'spgls.datasets' not in sys.modules; import spgls.datasets; "
        "print({'pooch', 'requests', 'openpyxl', 'rich'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
