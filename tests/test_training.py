"""Images, networks and predictions of the project's own training, on a few tiny images."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from experiments.images import Images, fashion_mnist, idx, long_tailed, split


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
