"""Make cvstats/datasets/llm.npz: the simulated evaluation of eight language models.

A simulated log with the shape of real ones: questions about passages, several models, several
epochs (runs with sampling), a score of 1 for a right answer. A model has an ability, a question
a difficulty, a passage is easier for some models than for others, and random noise differs from run
to run. Three of the models have the same ability, so that the best models are known.

    python tools/datasets/make_llm.py            write the file
    python tools/datasets/make_llm.py --check    compare with the file; exit 1 if they differ
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

TARGET = Path(__file__).parents[2] / "cvstats" / "datasets" / "llm.npz"
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
"""Abilities: logit of a right answer to a question of average difficulty."""

SPREAD = {"passage": 0.7, "question": 2.2, "model in passage": 0.5, "model in question": 1.2}
"""Standard deviations of passage and question effects, common to all models and for each."""


def propensities(rng: np.random.Generator) -> np.ndarray:
    """Draw the probability of a right answer, for each question and model."""
    shape = (PASSAGES, QUESTIONS, len(ABILITY))
    logit = np.array(list(ABILITY.values())) + np.zeros(shape)
    logit += SPREAD["passage"] * rng.standard_normal((PASSAGES, 1, 1))
    logit += SPREAD["question"] * rng.standard_normal((PASSAGES, QUESTIONS, 1))
    logit += SPREAD["model in passage"] * rng.standard_normal((PASSAGES, 1, len(ABILITY)))
    logit += SPREAD["model in question"] * rng.standard_normal(shape)
    return 1 / (1 + np.exp(-logit.reshape(PASSAGES * QUESTIONS, -1)))


def make() -> dict[str, np.ndarray]:
    """Draw the scores, an array over epochs, questions and models."""
    rng = np.random.default_rng(SEED)
    chance = propensities(rng)
    scores = (rng.random((EPOCHS, *chance.shape)) < chance).astype(np.int8)
    return {"model": np.array(list(ABILITY)), "score": scores}


def main() -> None:
    """Write the archive, or compare it with the stored one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the stored file")
    arrays = make()
    if not parser.parse_args().check:
        np.savez_compressed(TARGET, **arrays)
        return
    with np.load(TARGET, allow_pickle=False) as stored:
        same = set(stored.files) == set(arrays) and all(
            np.array_equal(stored[name], array) for name, array in arrays.items()
        )
    sys.exit(None if same else f"{TARGET.name} differs")


if __name__ == "__main__":
    main()
