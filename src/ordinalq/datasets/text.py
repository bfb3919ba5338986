"""Text encoders: TF-IDF, or fine-tuned RoBERTa.

TF-IDF needs no download. RoBERTa needs ordinalq[text].
"""

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ordinalq._utils.extras import require_extra
from ordinalq._utils.validation import check_integer, check_random_state

logger = logging.getLogger("ordinalq")


def tfidf(n_components: int | None = None, *, random_state: int = 876) -> Any:
    """Return an unfitted TF-IDF encoder of words and word pairs.

    Words and pairs must occur in at least 5 texts.

    Parameters
    ----------
    n_components : int, default=None
        Number of dense columns of a truncated SVD; None keeps the sparse matrix.
    random_state : int, default=876
        Seed of the SVD.

    Returns
    -------
    transformer
        Unfitted encoder with sublinear counts.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    vectorizer = TfidfVectorizer(min_df=5, sublinear_tf=True, ngram_range=(1, 2), dtype=np.float32)
    if n_components is None:
        return vectorizer
    check_integer("n_components", n_components, minimum=1)
    return make_pipeline(vectorizer, TruncatedSVD(n_components, random_state=random_state))


class RobertaVectors(TransformerMixin, BaseEstimator):
    """Vectors of a RoBERTa model that was fine-tuned to the classes.

    Fitting trains a sequence classifier by AdamW with a linearly decreasing learning rate and keeps the epoch with the
    smallest loss on held-out texts. The vector of a text is the mean of its first token over all hidden states (the
    embedding and each layer); there, texts are cut at the limit of the model, not at `max_length`.

    Parameters
    ----------
    model : str, default="roberta-base"
        Name on the Hugging Face hub, or a local folder with model and tokenizer.
    n_held_out : int, default=1000
        Texts for choosing the epoch, drawn from each class in proportion.
    max_epochs, learning_rate, weight_decay, batch_size, max_length
        Parameters of the fine-tuning.
    device : str, default=None
        For example "cuda"; None takes a GPU if there is one.
    random_state : int, default=1
        Seed of the held-out texts, the order of training and the dropout.

    Attributes
    ----------
    model_, tokenizer_
        The fine-tuned model.
    losses_ : list of float
        Held-out loss after each epoch; the model is that of the smallest.
    """

    def __init__(
        self,
        model: str = "roberta-base",
        *,
        n_held_out: int = 1000,
        max_epochs: int = 5,
        learning_rate: float = 2e-5,
        weight_decay: float = 0.01,
        batch_size: int = 16,
        max_length: int = 256,
        device: str | None = None,
        random_state: int = 1,
    ) -> None:
        self.model = model
        self.n_held_out = n_held_out
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_length = max_length
        self.device = device
        self.random_state = random_state

    def fit(self, texts: Any, y: Any) -> "RobertaVectors":
        """Fine-tune on texts (N,) with classes y (N,)."""
        torch, transformers = _import_text_extra()
        from sklearn.model_selection import train_test_split

        texts, y = np.asarray(texts, dtype=object), np.asarray(y)
        classes, codes = np.unique(y, return_inverse=True)
        train, held_out = train_test_split(
            np.arange(len(texts)), test_size=self.n_held_out, stratify=codes, random_state=self.random_state
        )
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        rng = check_random_state(self.random_state)
        # The new classification head and the dropout draw from torch's global generator: give it back as it was.
        with torch.random.fork_rng():
            torch.manual_seed(self.random_state)
            # Safetensors hold numbers only: the usual torch files are pickles, which could run code.
            self.tokenizer_ = transformers.AutoTokenizer.from_pretrained(self.model)
            self.model_ = transformers.AutoModelForSequenceClassification.from_pretrained(
                self.model, num_labels=len(classes), use_safetensors=True
            ).to(device)
            n_steps = self.max_epochs * -(-len(train) // self.batch_size)
            optimizer = torch.optim.AdamW(
                self.model_.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
            )
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / n_steps)
            self.losses_: list[float] = []
            best: dict[str, Any] = {}
            for epoch in range(self.max_epochs):
                self.model_.train()
                for rows in self._batches(rng.permutation(train)):
                    loss = self._loss(torch, texts, codes, rows)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    schedule.step()
                self.model_.eval()
                with torch.no_grad():
                    losses = [float(self._loss(torch, texts, codes, r)) * len(r) for r in self._batches(held_out)]
                self.losses_.append(sum(losses) / len(held_out))
                logger.info("epoch %d: held-out loss %.4f", epoch + 1, self.losses_[-1])
                if self.losses_[-1] == min(self.losses_):
                    best = {name: value.detach().clone() for name, value in self.model_.state_dict().items()}
        self.model_.load_state_dict(best)
        self.model_.eval()
        return self

    def transform(self, texts: Any) -> npt.NDArray[np.float32]:
        """Return the vectors (N, d), d being the width of the model."""
        check_is_fitted(self)
        torch, _ = _import_text_extra()
        texts = np.asarray(texts, dtype=object)
        # The position table has two more rows than a text may have tokens: one for padding, one before the first.
        limit = min(self.tokenizer_.model_max_length, self.model_.config.max_position_embeddings - 2)
        vectors = np.empty((len(texts), self.model_.config.hidden_size), dtype=np.float32)
        with torch.no_grad():
            for rows in self._batches(np.arange(len(texts))):
                states = self.model_(**self._tokens(texts[rows], limit), output_hidden_states=True).hidden_states
                first = torch.stack([state[:, 0] for state in states])  # (layers + 1, batch, d)
                vectors[rows] = first.mean(dim=0).cpu().numpy()
        return vectors

    def _loss(self, torch: Any, texts: Any, codes: Any, rows: Any) -> Any:
        labels = torch.as_tensor(codes[rows], device=self.model_.device)
        return self.model_(**self._tokens(texts[rows], self.max_length), labels=labels).loss

    def _tokens(self, texts: Any, limit: int) -> Any:
        tokens = self.tokenizer_(
            [str(text) for text in texts], truncation=True, max_length=limit, padding=True, return_tensors="pt"
        )
        return tokens.to(self.model_.device)

    def _batches(self, rows: Any) -> Iterator[Any]:
        for start in range(0, len(rows), self.batch_size):
            yield rows[start : start + self.batch_size]


def _import_text_extra() -> tuple[Any, Any]:
    with require_extra("text", "encoding text with RoBERTa"):
        import torch
        import transformers
    return torch, transformers
