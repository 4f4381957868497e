"""The paper's large data sets, as a few tiny files of the same layout; and fine-tuning on them."""

from __future__ import annotations

import csv
import json
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import calshift
from experiments import finetune
from experiments.finetune import Plan
from experiments.imagenet_lt import COUNTED, Rows, imagenet_lt, kept, restricted
from experiments.inputs import Batches, Pictures, Texts
from experiments.saved import Pair, load
from experiments.wilds import amazon, camelyon17, columns, iwildcam

Image = pytest.importorskip("PIL.Image", reason="images are read with pillow")
pytest.importorskip("pyarrow", reason="CSV files are read with pyarrow")

STARS = (4, 6, 8, 10, 30)  # reviews of each class in one split
WORDS = ("bad", "poor", "fine", "good", "best")


def generator(seed=0):
    return np.random.default_rng(seed)


def drawn(path, label, size=(12, 10), seed=0):
    """An image whose colour tells its class."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = generator(seed).integers(0, 60, (size[1], size[0], 3), dtype=np.uint8)
    pixels[..., label % 3] += 150
    Image.fromarray(pixels).save(path)


def table(path, head, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_NONNUMERIC).writerows([head, *rows])


# ---- ImageNet-LT


@pytest.fixture
def imagenet(tmp_path):
    """Three classes with 50, 25 and 10 training images, 5 each for validation, 4 for the test."""
    counts = {"train": (50, 25, 10), "val": (5, 5, 5), "test": (4, 4, 4)}
    for part, each in counts.items():
        folder = "val" if part == "test" else "train"
        lines = [
            f"{folder}/n0{c}/{part}_{k}.JPEG {c}"
            for c, count in enumerate(each)
            for k in range(count)
        ]
        (tmp_path / f"ImageNet_LT_{part}.txt").write_text("\n".join(lines) + "\n")
        for line in lines:
            file, label = line.split()
            drawn(tmp_path / file, int(label))
    return tmp_path


def test_imagenet_lists_are_merged_and_divided_class_by_class(imagenet):
    parts = imagenet_lt(imagenet, generator())
    assert np.bincount(parts.source.labels).tolist() == [11, 6, 3]
    assert np.bincount(parts.training.labels).tolist() == [44, 24, 12]
    assert np.bincount(parts.target.labels).tolist() == [4, 4, 4]
    assert parts.target.classes == ("n00", "n01", "n02")
    files = [*parts.training.items, *parts.source.items]
    assert len(set(files)) == 100
    assert any("val_" in Path(file).name for file in parts.source.items)  # merged, not as listed
    for file, label in zip(parts.source.items, parts.source.labels, strict=True):
        assert Path(file).is_file()
        assert Path(file).parent.name == f"n0{label}"


def test_imagenet_is_divided_by_the_seed(imagenet):
    first, again, other = (imagenet_lt(imagenet, generator(seed)).source for seed in (1, 1, 2))
    assert first.items == again.items != other.items


def test_what_is_wrong_with_imagenet_is_told(imagenet):
    path = imagenet / "ImageNet_LT_val.txt"
    path.write_text("train/n00/val_0.JPEG 0\ntrain/n00/val_1.JPEG\n")
    with pytest.raises(ValueError, match=r"ImageNet_LT_val.txt, line 2: .*a file and a label"):
        imagenet_lt(imagenet, generator())
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"no file .*ImageNet_LT_val.txt: put the lists"):
        imagenet_lt(imagenet, generator())
    path.write_text("train/n04/val_0.JPEG 4\n")
    with pytest.raises(ValueError, match="no image of class 3"):
        imagenet_lt(imagenet, generator())
    path.write_text("train/n01/val_0.JPEG 0\n")
    with pytest.raises(ValueError, match="same name: n01, n01, n02"):
        imagenet_lt(imagenet, generator())


def test_a_test_list_with_further_classes_is_refused(imagenet):
    (imagenet / "ImageNet_LT_test.txt").write_text("val/n03/test_0.JPEG 3\n")
    with pytest.raises(ValueError, match="labels must be 0 to 2; found 3 to 3"):
        imagenet_lt(imagenet, generator())


def test_missing_images_are_named(imagenet):
    for file in (imagenet / "val").rglob("*.JPEG"):
        file.unlink()
    with pytest.raises(FileNotFoundError, match=r"no file .*test_0.JPEG: .*unpack the images"):
        imagenet_lt(imagenet, generator())


def pair(source_counts=(60, 50, 20, 19, 11, 10), each=7, seed=0):
    """Source and target of six classes, with random probabilities."""
    rng, K = generator(seed), len(source_counts)
    samples = [
        calshift.Predictions(
            rng.dirichlet(np.ones(K), sum(counts)),
            np.repeat(np.arange(K), counts),
            classes=list("abcdef"),
        )
        for counts in (source_counts, (each,) * K)
    ]
    return Pair("tiny", *samples, {"data": "imagenet-lt"})


def test_restricted_keeps_classes_by_their_source_rows():
    """20 and 50 are in; the kept columns stand in the same proportion as before, and sum to 1."""
    whole = pair()
    found = restricted(whole)
    assert found.source.classes == ("b", "c")
    assert found.source.class_counts.tolist() == [50, 20]
    assert found.target.class_counts.tolist() == [7, 7]
    before = whole.target.p[np.isin(whole.target.labels, (1, 2))]
    assert found.target.p.sum(axis=1) == pytest.approx(1)
    assert found.target.p[:, 0] / found.target.p[:, 1] == pytest.approx(before[:, 1] / before[:, 2])
    assert found.origin == {"data": "imagenet-lt", "kept_classes": 2}


def test_restricted_as_the_papers_numbers_have_it():
    assert restricted(pair(), *COUNTED).source.classes == ("c", "d", "e")
    with pytest.raises(ValueError, match="tiny: no class has 100 to 200 rows"):
        restricted(pair(), 100, 200)


def test_kept_classes_are_calibrated_if_all_classes_were():
    """Bayes: given that the class is one of those kept, the divided probabilities are true."""
    rng = generator(3)
    p = rng.dirichlet([0.5, 0.5, 0.5], 10_000)
    y = (rng.random(len(p))[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    sample = calshift.Predictions(p, y)
    found = kept(Pair("true", sample, sample, {}), np.array([0, 2])).source
    # 6700 rows: a mean of residuals has a standard error of at most 0.5 / sqrt(6700) = 0.006
    assert abs((found.p[:, 1] - found.labels).mean()) < 0.02
    assert abs(calshift.calibration_error(found.p, found.labels).estimate) < 1e-3
    undivided = p[np.isin(y, (0, 2)), 2]
    assert calshift.calibration_error(undivided, found.labels).estimate > 0.01


# ---- Camelyon17


HEAD = ("", "patient", "node", "x_coord", "y_coord", "tumor", "slide", "center", "split")


@pytest.fixture
def camelyon(tmp_path):
    """Balanced: 200 training and 40 validation rows, and as many of the hospitals kept apart."""
    home, rows = tmp_path / "camelyon17_v1.0", []
    for k in range(480):
        center = (0, 1, 3, 2)[k % 4]
        rows.append((k, "004", 4, k, 2 * k, (k // 4) % 2, 7, center, int(k // 4 % 12 >= 10)))
    table(home / "metadata.csv", HEAD, rows)
    for _, patient, node, x, y, tumor, *_ in rows:
        folder = f"patches/patient_{patient}_node_{node}"
        drawn(home / folder / f"patch_patient_{patient}_node_{node}_x_{x}_y_{y}.png", tumor, (9, 9))
    return tmp_path


def counted(rows):
    return np.bincount(rows.labels, minlength=len(rows.classes)).tolist()


def x_of(rows):
    """The number of the row, which its file tells."""
    return np.array([int(Path(file).stem.split("_x_")[1].split("_y_")[0]) for file in rows.items])


def test_camelyon_has_a_source_like_its_training_rows_and_another_target(camelyon):
    parts = camelyon17(camelyon, generator(), source_ratio=5, target_ratio=0.25)
    negatives, positives = counted(parts.target)
    assert positives == 4 * negatives == 20
    for rows in (parts.training, parts.source):
        negatives, positives = counted(rows)
        assert positives == negatives // 5 > 0
    # all negatives stay but for what the ratio cannot take: fewer than 5
    held = np.concatenate([x_of(parts.training), x_of(parts.source)])
    assert len(set(held)) == len(held)
    assert 90 < counted(parts.training)[0] + counted(parts.source)[0] <= 100


def test_camelyon_leaves_out_the_hospitals_that_wilds_keeps_apart(camelyon):
    parts = camelyon17(camelyon, generator(), source_ratio=1, target_ratio=1)
    every = np.concatenate([x_of(part) for part in (parts.training, parts.source, parts.target)])
    assert set(every % 4) == {0, 2}
    assert (x_of(parts.target) // 4 % 12 >= 10).all()
    assert (x_of(parts.source) // 4 % 12 < 10).all()
    assert len(parts.target) == 40
    assert 25 < len(parts.source) <= 40
    assert all(Path(file).is_file() for file in parts.source.items)
    assert parts.source.labels.tolist() == (x_of(parts.source) // 4 % 2).tolist()


def test_what_is_wrong_with_wilds_is_told(camelyon):
    path = camelyon / "camelyon17_v1.0" / "metadata.csv"
    table(path, HEAD[:-1], [])
    with pytest.raises(ValueError, match=r"metadata.csv has no column 'split' but '', 'patient'"):
        camelyon17(camelyon, generator())
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"camelyon17_v1.0/metadata.csv: name the root_dir"):
        camelyon17(camelyon, generator())


# ---- iWildCam


WILD = ("split", "y", "filename", "datetime")
WILD_COUNTS = {"train": 6, "id_val": 3, "val": 2, "test": 2}


@pytest.fixture
def wild(tmp_path):
    """24 classes; class c has 2 + c rows in the i.i.d. test set, so 4..23 are the most frequent."""
    home = tmp_path / "iwildcam_v2.0"
    counts = {split: [count] * 24 for split, count in WILD_COUNTS.items()}
    counts["id_test"] = [2 + c for c in range(24)]
    rows = [
        (split, c, f"{split}-{c}-{k}.jpg", "2013-06-05 05:44:19.000")
        for split, each in counts.items()
        for c, count in enumerate(each)
        for k in range(count)
    ]
    table(home / "metadata.csv", WILD, rows)
    names = [(c, 100 + c, f"animal {c}") for c in range(24)]
    table(home / "categories.csv", ("y", "category_id", "name"), [*names, (99999, 7, "no image")])
    for _, c, file, _ in rows:
        drawn(home / "train" / file, c, (8, 8))
    return tmp_path


def test_iwildcam_has_its_20_most_frequent_classes_equally_often(wild):
    parts = iwildcam(wild, generator())
    assert counted(parts.target) == [0] * 4 + [6] * 20
    assert counted(parts.source) == [0] * 4 + [3] * 20
    assert counted(parts.training) == [6] * 24
    assert parts.training.classes[23] == "animal 23"
    splits = {"train": parts.training, "id_val": parts.source, "id_test": parts.target}
    for split, rows in splits.items():
        names = [Path(file).name.split("-") for file in rows.items]
        assert {name for name, _, _ in names} == {split}
        assert [int(c) for _, c, _ in names] == rows.labels.tolist()


def test_iwildcam_without_names_has_numbers(wild):
    (wild / "iwildcam_v2.0" / "categories.csv").unlink()
    assert iwildcam(wild, generator()).source.classes[:2] == ("0", "1")


# ---- Amazon


@pytest.fixture
def reviews(tmp_path):
    """Splits 0 to 4 and -1 with the same stars, in turns; some texts have lines and quotes."""
    rows, splits = [], []
    for c, count in enumerate(STARS):
        for k in range(count):
            for split in (-1, 0, 1, 2, 3, 4):
                text = f'{WORDS[c]} thing, "really"\nsplit {split} no {k}'
                rows.append((float(c + 1), "A1", text, "NA"))
                splits.append((split,))
    home = tmp_path / "amazon_v2.1"
    table(home / "reviews.csv", ("overall", "reviewerID", "reviewText", "summary"), rows)
    table(home / "splits" / "user.csv", ("split",), splits)
    return tmp_path


def test_amazon_has_each_star_as_often_as_the_rarest(reviews):
    parts = amazon(reviews, generator())
    assert counted(parts.training) == counted(parts.source) == list(STARS)
    assert counted(parts.target) == [4] * 5
    for rows, split in zip((parts.training, parts.source, parts.target), (0, 2, 4), strict=True):
        assert all(f"\nsplit {split} no" in text for text in rows.items)
    words = [text.split()[0] for text in parts.target.items]
    assert words == [WORDS[c] for c in parts.target.labels]
    assert ', "really"\n' in parts.source.items[0]


def test_texts_of_many_lines_are_read_whole(tmp_path):
    """Longer than what arrow reads at once, 1 MB, so that some piece ends within a text."""
    texts = [f"{k}\n" + "a line, and\n" * 500 for k in range(400)]
    table(tmp_path / "a.csv", ("n", "text"), list(enumerate(texts)))
    held = columns(tmp_path / "a.csv", {"text": "string", "n": "int64"})
    assert held["text"].to_pylist() == texts
    assert held["n"].tolist() == list(range(400))


def test_amazon_files_must_fit(reviews):
    table(reviews / "amazon_v2.1" / "splits" / "user.csv", ("split",), [(0,)])
    with pytest.raises(ValueError, match=r"reviews.csv has 348 rows, splits/user.csv 1"):
        amazon(reviews, generator())


def test_absent_packages_are_named(reviews, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        amazon(reviews, generator())
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match="pip install timm"):
        finetune.image_model("resnet50", 2, False)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match="pip install transformers"):
        finetune.text_model("roberta-base", 5, True)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        finetune.main(["--data", "amazon", "--folder", str(reviews), "--model", "any"])


# ---- fine-tuning


def coloured(folder, rows=48, classes=3, size=(12, 10)):
    """Images whose colour tells the class."""
    labels = np.arange(rows) % classes
    files = [folder / f"{k}.png" for k in range(rows)]
    for k, file in enumerate(files):
        drawn(file, int(labels[k]), size, seed=k)
    return Rows([str(file) for file in files], labels, tuple("abcdef"[:classes]))


def tiny_model(classes=3, side=8, seed=0, dropout=0.0):
    """With torch alone; the first layer has running means, which a checkpoint must keep too."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    last = torch.nn.Linear(3 * side * side, classes)
    torch.nn.init.normal_(last.weight, std=0.005)  # a dozen steps move weights by 0.006
    return torch.nn.Sequential(
        torch.nn.BatchNorm2d(3), torch.nn.Flatten(), torch.nn.Dropout(dropout), last
    )


@pytest.mark.slow
def test_the_middle_of_an_image_is_predicted_from(tmp_path):
    pytest.importorskip("torch", reason="inputs are tensors")
    pixels = generator().integers(0, 256, (256, 256, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    found = Pictures(224)([str(tmp_path / "a.png")], None)
    assert tuple(found.shape) == (1, 3, 224, 224)
    middle = pixels[16:240, 16:240] / 255
    expected = (middle - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    assert np.allclose(found[0].numpy().transpose(1, 2, 0), expected, atol=1e-5)


@pytest.mark.parametrize("size", [(96, 96), (300, 30), (30, 300), (7, 5)])
def test_images_of_any_size_are_brought_to_one(tmp_path, size):
    drawn(tmp_path / "a.png", 0, size)
    for rng in (None, generator()):
        assert Pictures(24).one(str(tmp_path / "a.png"), rng).shape == (24, 24, 3)


def test_training_images_are_mirrored_moved_and_of_other_colours(tmp_path):
    ramp = np.repeat(np.linspace(60, 180, 64)[None, :, None], 64, axis=0).repeat(3, axis=2)
    Image.fromarray(ramp.astype(np.uint8)).save(tmp_path / "ramp.png")
    Image.fromarray(np.full((64, 64, 3), 100, np.uint8)).save(tmp_path / "grey.png")
    rng, pictures = generator(1), Pictures(16)
    ramps = [pictures.one(str(tmp_path / "ramp.png"), rng).astype(float) for _ in range(60)]
    mirrored = sum(one[0, 0, 0] > one[0, -1, 0] for one in ramps)
    assert 15 <= mirrored <= 45  # 30, with a standard deviation of 3.9
    assert len({one.tobytes() for one in ramps}) == 60
    greys = [pictures.one(str(tmp_path / "grey.png"), rng).mean() for _ in range(60)]
    # contrast and saturation leave even grey alone; brightness is uniform on 60 to 140
    assert 59 <= min(greys) < 75 < 125 < max(greys) <= 141


def test_batches_are_the_same_in_another_process(tmp_path):
    torch = pytest.importorskip("torch", reason="inputs are tensors")
    rows = coloured(tmp_path, 10)
    batches = Batches(rows, np.arange(10)[::-1], Pictures(8), 4, (0, 1))
    assert len(batches) == 3
    x, y = batches[2]
    assert y.tolist() == [1, 0]
    again, _ = pickle.loads(pickle.dumps(batches))[2]
    assert torch.equal(x, again)
    assert not torch.equal(x, replace(batches, seed=(0, 2))[2][0])


@pytest.mark.slow
def test_tuning_learns_and_goes_on_from_its_checkpoint(tmp_path, capsys):
    torch = pytest.importorskip("torch", reason="training needs torch")
    rows, plan, prepare = coloured(tmp_path), Plan(epochs=4, batch=16), Pictures(8)
    file = tmp_path / "made" / "a.pt"
    whole = finetune.tuned(tiny_model(dropout=0.3), prepare, rows, plan)
    finetune.tuned(tiny_model(dropout=0.3), prepare, rows, plan, file, stop=2)
    half = torch.load(file, weights_only=True)["optimizer"]["param_groups"][0]
    # 12 steps, the first of them warm: the seventh has 6/11 of the peak
    assert half["lr"] == pytest.approx(5e-4 * 6 / 11)
    assert half["weight_decay"] == 1e-3
    resumed = finetune.tuned(tiny_model(seed=9, dropout=0.3), prepare, rows, plan, file)
    found = [finetune.logits_of(model.train(), prepare, rows, plan) for model in (whole, resumed)]
    assert np.allclose(*found, atol=1e-5)
    assert (found[0].argmax(1) == rows.labels).mean() > 0.6  # chance: 1/3
    told = capsys.readouterr()
    assert told.out.count("epoch 3/4") == 2
    assert told.out.count("epoch 2/4") == 2
    assert "3 of 3 batches\n" in told.err
    assert torch.load(file, weights_only=True)["optimizer"]["param_groups"][0]["lr"] == 0


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    pytest.importorskip("torch", reason="training needs torch")
    rows, file = coloured(tmp_path, 12), tmp_path / "a.pt"
    finetune.tuned(tiny_model(), Pictures(8), rows, Plan(epochs=1), file)
    with pytest.raises(ValueError, match=r"a.pt is of .*'epochs': 1.*'epochs': 2.*move it away"):
        finetune.tuned(tiny_model(), Pictures(8), rows, Plan(epochs=2), file)
    assert not list(tmp_path.glob("*unfinished*"))


def test_gradients_are_clipped(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="training needs torch")
    norms, clip = [], torch.nn.utils.clip_grad_norm_

    def watched(parameters, norm):
        held = list(parameters)
        clip(held, norm)
        norms.append(float(torch.stack([p.grad.norm() for p in held]).norm()))

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", watched)
    model = tiny_model()
    with torch.no_grad():
        model[3].weight *= 1000  # sure of the wrong classes: steep
    finetune.tuned(model, Pictures(8), coloured(tmp_path, 12), Plan(epochs=1, batch=6))
    assert norms == pytest.approx([5.0, 5.0], rel=1e-3)


def run(*arguments):
    finetune.main([str(one) for one in arguments])


def test_the_command_saves_predictions_with_their_origin(wild, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="training needs torch")
    asked = []

    def made(name, classes, pretrained, side):
        asked.append((name, classes, pretrained, side))
        return tiny_model(classes), Pictures(8)

    monkeypatch.setattr(finetune, "image_model", made)
    run("--data", "iwildcam", "--folder", wild, "--model", "some/net", "--epochs", 2,
        "--workers", 0, "--results", tmp_path / "new")  # fmt: skip
    assert asked == [("some/net", 24, True, None)]
    saved = load(tmp_path / "new" / "iwildcam-net.npz")
    assert len(saved.source) == 60
    assert saved.target.class_counts.tolist() == [0] * 4 + [6] * 20
    assert saved.source.classes[5] == "animal 5"
    about = {key: saved.origin[key] for key in ("data", "model", "epochs", "seed", "training_rows")}
    assert about == {"data": "iwildcam", "model": "net", "epochs": 2, "seed": 0,
                     "training_rows": 144}  # fmt: skip
    assert str(tmp_path) not in json.dumps(saved.origin)
    assert (tmp_path / "new" / "iwildcam-net.pt").exists()


def test_the_command_knows_what_the_paper_does_with_each_data_set(monkeypatch, tmp_path, capsys):
    pytest.importorskip("torch", reason="it asks torch for a graphics card")
    common = ["--folder", str(tmp_path), "--model", "any", "--data"]
    asked, ratios = finetune._asked([*common, "imagenet-lt"])
    assert (asked.epochs, asked.pretrained, ratios) == (100, False, {})
    asked, ratios = finetune._asked([*common, "camelyon17", "--source-ratio", "50"])
    assert (asked.epochs, asked.pretrained, ratios) == (
        10,
        True,
        {"source_ratio": 50.0, "target_ratio": 1.0},
    )
    with pytest.raises(SystemExit):
        finetune._asked([*common, "amazon", "--target-ratio", "2"])
    assert "are for camelyon17" in capsys.readouterr().err


def test_a_model_of_timm_is_tuned(camelyon, tmp_path):
    torch = pytest.importorskip("torch", reason="training needs torch")
    pytest.importorskip("timm", reason="models of images are timm's")
    torch.set_num_threads(1)
    run("--data", "camelyon17", "--folder", camelyon, "--model", "test_resnet", "--no-pretrained",
        "--side", 32, "--epochs", 1, "--batch", 48, "--target-ratio", 0.25, "--workers", 0,
        "--results", tmp_path)  # fmt: skip
    saved = load(tmp_path / "camelyon17-test_resnet.npz")
    assert saved.target.class_counts.tolist() == [5, 20]
    assert saved.source.classes == ("normal", "tumor")
    assert (saved.origin["source_ratio"], saved.origin["target_ratio"]) == (5.0, 0.25)
    assert saved.origin["pretrained"] is False


def test_models_of_timm_say_which_images_they_take():
    pytest.importorskip("torch", reason="training needs torch")
    pytest.importorskip("timm", reason="models of images are timm's")
    model, pictures = finetune.image_model("test_vit", 7, False)
    assert model.num_classes == 7
    assert (pictures.side, pictures.mean) == (160, (0.5, 0.5, 0.5))
    assert finetune.image_model("test_resnet", 7, False, 64)[1].side == 64


@pytest.fixture
def tiny_bert(tmp_path):
    """A folder as save_pretrained writes it, of a model with random weights."""
    torch = pytest.importorskip("torch", reason="training needs torch")
    transformers = pytest.importorskip("transformers", reason="models of texts are transformers'")
    torch.set_num_threads(1)
    words = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "thing", "really", *WORDS)
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"), model_max_length=16)
    shape = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=16,
    )  # fmt: skip
    for part in (tokenizer, transformers.BertModel(shape)):
        part.save_pretrained(tmp_path / "tiny-bert")
    return tmp_path / "tiny-bert"


def test_texts_are_cut_and_padded(tiny_bert):
    transformers = pytest.importorskip("transformers", reason="models of texts are transformers'")
    prepare = Texts(transformers.AutoTokenizer.from_pretrained(tiny_bert))
    made = prepare(["good thing", "bad " * 50], None)
    assert tuple(made["input_ids"].shape) == (2, 16)
    assert made["attention_mask"].sum(axis=1).tolist() == [4, 16]


def test_pretrained_weights_are_taken_or_not(tiny_bert):
    first, again, other = (
        finetune.text_model(str(tiny_bert), 5, pretrained)[0] for pretrained in (True, True, False)
    )
    words = [model.bert.embeddings.word_embeddings.weight for model in (first, again, other)]
    assert words[0].equal(words[1])
    assert not words[0].equal(words[2])
    assert first.num_labels == other.num_labels == 5


@pytest.mark.parametrize("pretrained", ["--pretrained", "--no-pretrained"])
def test_a_model_of_transformers_is_tuned(tiny_bert, reviews, tmp_path, pretrained):
    run("--data", "amazon", "--folder", reviews, "--model", tiny_bert, pretrained, "--epochs", 2,
        "--batch", 16, "--workers", 0, "--results", tmp_path / "new")  # fmt: skip
    saved = load(tmp_path / "new" / "amazon-tiny-bert.npz")
    assert saved.source.class_counts.tolist() == list(STARS)
    assert saved.target.class_counts.tolist() == [4] * 5
    assert saved.origin["training_rows"] == sum(STARS)
    assert saved.source.classes[0] == "1 star"
