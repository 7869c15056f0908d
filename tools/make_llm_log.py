"""Make the evaluation log of language models that the guide works on.

A simulated log with the shape of real ones: questions about passages, several models, several
epochs (runs with sampling), a score of 1 for a right answer. A model has an ability, a question
a difficulty, a passage suits some models better than others, and what is left to chance differs
from run to run. Three of the models are equally able, so that the truth about the best is known.

    python tools/make_llm_log.py docs/guide/llm_log.csv
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

SEED = 2026
EPOCHS, PASSAGES, QUESTIONS = 4, 60, 5

ABILITY = {
    "aster-8b": 0.2,
    "aster-70b": 1.5,
    "birch-7b": 0.0,
    "birch-32b": 1.0,
    "cedar-mini": 0.6,
    "cedar-large": 1.5,
    "dahlia": 1.2,
    "elm": 1.5,
}
"""On the scale of the logit of a right answer, for a question of middling difficulty."""

SPREAD = {"passage": 0.7, "question": 2.2, "model in passage": 0.5, "model in question": 1.2}
"""Standard deviations of what a passage and a question add for all models, and for each."""


def propensities(rng: np.random.Generator) -> np.ndarray:
    """Draw the probability of a right answer, for each question and model."""
    shape = (PASSAGES, QUESTIONS, len(ABILITY))
    logit = np.array(list(ABILITY.values())) + np.zeros(shape)
    logit += SPREAD["passage"] * rng.standard_normal((PASSAGES, 1, 1))
    logit += SPREAD["question"] * rng.standard_normal((PASSAGES, QUESTIONS, 1))
    logit += SPREAD["model in passage"] * rng.standard_normal((PASSAGES, 1, len(ABILITY)))
    logit += SPREAD["model in question"] * rng.standard_normal(shape)
    return 1 / (1 + np.exp(-logit.reshape(PASSAGES * QUESTIONS, -1)))


def make() -> pd.DataFrame:
    """Make the log: a row for each epoch and question, a column of scores for each model."""
    rng = np.random.default_rng(SEED)
    chance = propensities(rng)
    scores = (rng.random((EPOCHS, *chance.shape)) < chance).astype(int)
    items = [f"p{p:02d}-q{q}" for p in range(PASSAGES) for q in range(QUESTIONS)]
    frame = pd.DataFrame(scores.reshape(-1, len(ABILITY)), columns=list(ABILITY))
    frame.insert(0, "epoch", np.repeat(np.arange(1, EPOCHS + 1), len(items)))
    frame.insert(1, "passage", [item.split("-")[0] for item in items] * EPOCHS)
    frame.insert(2, "item", items * EPOCHS)
    return frame


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    make().to_csv(parser.parse_args().path, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
