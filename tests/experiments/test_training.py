"""Images, networks and predictions of the project's own training, on a few tiny images."""

from __future__ import annotations

import gzip
import io
import json
import pickle

import numpy as np
import pytest

from experiments.images import Images, cifar, fashion_mnist, idx, jpeg_archive, long_tailed, split


def tiny(rows=80, classes=4, side=8, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    pixels = rng.integers(0, 60, (rows, 1, side, side), dtype=np.uint8)
    pixels[np.arange(rows), 0, labels] += 180  # a bright line tells the class
    return Images(pixels, labels, tuple("abcd"[:classes]))


def written(path, array):
    sizes = b"".join(int(size).to_bytes(4, "big") for size in array.shape)
    with gzip.open(path, "wb") as file:
        file.write(b"\0\0\x08" + bytes([array.ndim]) + sizes + array.tobytes())


def test_idx_files_are_read_as_they_were_written(tmp_path):
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    written(tmp_path / "a.gz", array)
    assert np.array_equal(idx(tmp_path / "a.gz"), array)
    with gzip.open(tmp_path / "b.gz", "wb") as file:
        file.write(b"something else")
    with pytest.raises(ValueError, match="no IDX file"):
        idx(tmp_path / "b.gz")


def test_fashion_mnist_is_read_from_its_four_files(tmp_path):
    for part, rows in (("train", 20), ("t10k", 10)):
        written(tmp_path / f"{part}-images-idx3-ubyte.gz", np.zeros((rows, 28, 28), np.uint8))
        written(tmp_path / f"{part}-labels-idx1-ubyte.gz", (np.arange(rows) % 10).astype(np.uint8))
    training, test = fashion_mnist(tmp_path)
    assert training.pixels.shape == (20, 1, 28, 28)
    assert len(test) == 10
    assert test.classes[9] == "Ankle boot"
    with pytest.raises(FileNotFoundError, match="dataset-fashion-mnist"):
        fashion_mnist(tmp_path / "nowhere")


def pickled(path, **parts):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pickle.dumps(parts))


def test_cifar_is_read_as_torchvision_unpacks_it(tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (12, 3072), dtype=np.uint8)
    inner = tmp_path / "cifar-10-batches-py"
    for k in range(5):
        pickled(inner / f"data_batch_{k + 1}", data=pixels[2 * k : 2 * k + 2], labels=[k, k + 1])
    pickled(inner / "test_batch", data=pixels[10:], labels=[9, 0])
    pickled(inner / "batches.meta", label_names=list("abcdefghij"))
    training, test = cifar(tmp_path)
    assert training.labels.tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert np.array_equal(training.pixels[3, 1], pixels[3, 1024:2048].reshape(32, 32))  # green
    assert test.labels.tolist() == [9, 0]
    assert test.classes == tuple("abcdefghij")
    fine = tmp_path / "cifar-100-python"
    for name in ("train", "test"):
        pickled(fine / name, data=pixels, fine_labels=[7] * 12, coarse_labels=[1] * 12)
    pickled(fine / "meta", fine_label_names=[str(c) for c in range(100)])
    assert cifar(tmp_path, 100)[0].labels.tolist() == [7] * 12
    with pytest.raises(FileNotFoundError, match=r"torchvision\.datasets"):
        cifar(tmp_path / "nowhere")


def test_images_are_read_from_an_archive_of_jpeg_files(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="JPEG files are read with pillow")
    files = []
    for value in (10, 120, 240):
        file = io.BytesIO()
        image.new("RGB", (32, 32), (value, 0, 0)).save(file, "JPEG", quality=95)
        files.append(file.getvalue())
    offsets = np.cumsum([0, *map(len, files)])
    np.savez(tmp_path / "a.npz", jpeg=np.frombuffer(b"".join(files), np.uint8), offsets=offsets,
             labels=[0, 1, 1], is_train=[True, False, True], classes=["a", "b"])  # fmt: skip
    training, test = jpeg_archive(tmp_path / "a.npz")
    assert training.pixels.shape == (2, 3, 32, 32)
    assert np.abs(training.pixels[:, 0].mean(axis=(1, 2)) - [10, 240]).max() < 4
    assert test.labels.tolist() == [1]


def test_the_held_out_part_has_the_same_long_tail():
    images = long_tailed(tiny(4000), 10, np.random.default_rng(1))
    counts = np.bincount(images.labels)
    assert counts[0] == 1000
    assert counts[-1] == 100
    rest, held = split(images, 0.2, np.random.default_rng(2))
    assert np.array_equal(np.bincount(held.labels), np.round(0.2 * counts))
    assert len(rest) + len(held) == len(images)


def test_the_rate_rises_over_a_tenth_and_falls_to_nothing():
    from experiments.train import schedule

    rates = [schedule(step, 200) for step in range(200)]
    assert rates[19] == 1 == max(rates)
    assert rates[0] == pytest.approx(0.05)
    assert np.diff(rates[20:]) == pytest.approx(-1 / 180)
    assert schedule(200, 200) == 0


@pytest.mark.parametrize(("depth", "thousands"), [(20, 269), (32, 464), (56, 853)])
def test_networks_have_the_size_that_he_et_al_print(depth, thousands):
    pytest.importorskip("torch", reason="training needs torch")
    from experiments.resnet import ResNet

    # their table 6 says 0.27M, 0.46M and 0.85M for three channels and ten classes
    count = sum(part.numel() for part in ResNet(depth, 10).parameters())
    assert count // 1000 == thousands


def test_other_depths_are_refused():
    pytest.importorskip("torch", reason="training needs torch")
    from experiments.resnet import ResNet

    with pytest.raises(ValueError, match=r"6 n \+ 2"):
        ResNet(21, 10)


def test_training_learns_and_goes_on_from_its_checkpoint(tmp_path, capsys):
    torch = pytest.importorskip("torch", reason="training needs torch")
    from experiments.saved import save
    from experiments.train import logits_of, trained

    torch.set_num_threads(1)
    images = tiny()
    whole = trained(images, 8, 4, seed=0)
    trained(images, 8, 4, seed=0, checkpoint=tmp_path / "a.pt", stop=2)
    resumed = trained(images, 8, 4, seed=0, checkpoint=tmp_path / "a.pt")
    assert np.allclose(logits_of(whole, images), logits_of(resumed, images), atol=1e-5)
    assert capsys.readouterr().out.count("epoch 3/4") == 2
    found = logits_of(whole, images), images.labels
    save(tmp_path / "a.npz", found, found, images.classes, {"seed": 0})
    with np.load(tmp_path / "a.npz") as saved:
        assert saved["logits_target"].shape == (80, 4)
        assert json.loads(str(saved["origin"]))["accuracy"]["source"] > 0.5  # chance: 0.25
