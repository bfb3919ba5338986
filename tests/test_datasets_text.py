"""RoBERTa vectors: the real code path, with a tiny untrained model."""

import json
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ordinalq.datasets.amazon import from_reviews
from ordinalq.datasets.text import RobertaVectors, tfidf

WORDS = ["dreadful", "readable", "marvellous"]
TEXTS = np.array([f"a {WORDS[i % 3]} book , part {i // 3}" for i in range(72)], dtype=object)
STARS = np.arange(72) % 3


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory):
    """A RoBERTa of three layers with random weights, and a tokenizer trained on the texts."""
    torch = pytest.importorskip("torch", reason="needs ordinalq[text]")
    transformers = pytest.importorskip("transformers", reason="needs ordinalq[text]")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    folder = tmp_path_factory.mktemp("model")
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=300, special_tokens=[*special.values()]))
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
    fast.save_pretrained(folder)
    torch.set_num_threads(1)  # more of them only wait for each other on a model of this size
    torch.manual_seed(0)
    config = transformers.RobertaConfig(
        vocab_size=fast.vocab_size,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=40,
        hidden_dropout_prob=0.02,
        attention_probs_dropout_prob=0.02,
    )
    transformers.RobertaForMaskedLM(config).save_pretrained(folder)
    return str(folder)


def encoder(tiny_model, **options):
    settings = {"n_held_out": 12, "max_epochs": 6, "learning_rate": 1e-2, "batch_size": 12, "max_length": 24}
    return RobertaVectors(tiny_model, **settings | options)


def test_fine_tuning_lowers_the_held_out_loss(tiny_model):
    fitted = encoder(tiny_model).fit(TEXTS, STARS)
    assert len(fitted.losses_) == 6
    assert min(fitted.losses_) < 0.7 * np.log(3)  # log(3): uniform


def test_weights_of_the_best_epoch_are_kept(tiny_model):
    import torch
    from sklearn.model_selection import train_test_split

    # Labels without meaning: the longer the training, the worse the held-out loss.
    labels = np.random.default_rng(3).permutation(STARS)
    fitted = encoder(tiny_model, max_epochs=20).fit(TEXTS, labels)
    assert np.argmin(fitted.losses_) < 19
    held_out = train_test_split(np.arange(72), test_size=12, stratify=labels, random_state=1)[1]
    with torch.no_grad():
        loss = float(fitted._loss(torch, TEXTS, labels, held_out))
    assert_allclose(loss, min(fitted.losses_), rtol=1e-4)
    assert loss < 0.99 * fitted.losses_[-1]


def test_vector_is_the_mean_of_the_first_token_over_all_hidden_states(tiny_model):
    import torch

    fitted = encoder(tiny_model, max_epochs=1).fit(TEXTS, STARS)
    vectors = fitted.transform(TEXTS[:5])
    assert vectors.shape == (5, 32)
    assert vectors.dtype == np.float32
    with torch.no_grad():
        tokens = fitted.tokenizer_([TEXTS[2]], return_tensors="pt")
        states = fitted.model_(**tokens, output_hidden_states=True).hidden_states
    assert len(states) == 4  # the embedding and three layers
    assert_allclose(vectors[2], np.mean([state[0, 0].numpy() for state in states], axis=0), atol=1e-5)


def test_long_texts_are_cut_at_the_limit_of_the_model(tiny_model):
    fitted = encoder(tiny_model, max_epochs=1).fit(TEXTS, STARS)
    long = " ".join(TEXTS[:20])
    ids = fitted.tokenizer_([long])["input_ids"][0]
    assert len(ids) > 38 > fitted.max_length
    assert np.isfinite(fitted.transform([long])).all()
    # More than max_length tokens count: texts that differ only beyond it have different vectors.
    one, two = fitted.transform(["a book " * 10 + "dreadful", "a book " * 10 + "marvellous"])
    assert len(fitted.tokenizer_(["a book " * 10])["input_ids"][0]) > fitted.max_length
    assert np.abs(one - two).max() > 1e-6


def test_same_random_state_gives_the_same_vectors_and_leaves_the_global_one(tiny_model):
    import torch

    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one = encoder(tiny_model, max_epochs=1).fit(TEXTS, STARS).transform(TEXTS)
    assert_array_equal(before, torch.random.get_rng_state())
    torch.manual_seed(6)
    two = encoder(tiny_model, max_epochs=1).fit(TEXTS, STARS).transform(TEXTS)
    assert_array_equal(one, two)


def test_raw_reviews_become_roberta_vectors(tiny_model, tmp_path):
    path = tmp_path / "reviews.json"
    lines = [{"reviewText": f"{text} " * 9, "overall": 1.0 + i % 5, "helpful": [1, 1]} for i, text in enumerate(TEXTS)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    dataset = from_reviews(path, encoder(tiny_model, max_epochs=1), real=[[0.2] * 5])
    assert dataset.train.X.shape == (36, 32)
    assert dataset.feature_names[:2] == ("feature_0", "feature_1")
    assert dataset.protocols == ("APP", "APP-OQ", "real")


def test_without_the_extra_the_error_names_the_package_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"^encoding text with RoBERTa needs torch\. .*ordinalq\[text\]"):
        RobertaVectors().fit(TEXTS, STARS)


def test_tfidf_has_the_settings_of_the_authors():
    vectorizer = tfidf()
    assert (vectorizer.min_df, vectorizer.sublinear_tf, vectorizer.ngram_range) == (5, True, (1, 2))
    with pytest.raises(ValueError, match="n_components must be an integer >= 1"):
        tfidf(n_components=0)
