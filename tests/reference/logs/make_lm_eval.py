"""Write the lm-evaluation-harness samples of this directory: python make_lm_eval.py OUT."""

import json
import random
import sys
import tempfile
from pathlib import Path

from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker

out = Path(sys.argv[1])


class Mock(LM):
    """Right with a probability that depends on the model alone."""

    def __init__(self, name, right):
        super().__init__()
        self.name, self.right = name, right

    def loglikelihood(self, requests):
        return [
            (
                -random.Random(f"{self.name}{r.args}").random()
                - (0 if r.args[1] == " yes" else self.right),
                False,
            )
            for r in requests
        ]

    def loglikelihood_rolling(self, requests):
        raise NotImplementedError

    def generate_until(self, requests):
        answers = []
        for r in requests:
            a, b = (int(x) for x in r.args[0].removesuffix("=").split("+"))
            luck = random.Random(f"{self.name}{r.args[0]}").random()
            near = f"It may be {a + b}" if luck < self.right + 0.2 else "It may be 7 or 8"
            answers.append(f"The answer is {a + b}." if luck < self.right else near)
        return answers


with tempfile.TemporaryDirectory() as folder:
    docs = ""
    rng = random.Random(3)
    rows = [{"q": f"{rng.randrange(90)}+{rng.randrange(90)}="} for _ in range(30)]
    for row in rows:
        a, b = row["q"][:-1].split("+")
        row["a"] = str(int(a) + int(b))
    task = {
        "task": "sums",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(docs)}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{q}}",
        "doc_to_target": "{{a}}",
        "generation_kwargs": {"until": ["\n"]},
        "filter_list": [
            {
                "name": "strict",
                "filter": [
                    {"function": "regex", "regex_pattern": r"answer is (\d+)"},
                    {"function": "take_first"},
                ],
            },
            {
                "name": "flexible",
                "filter": [
                    {"function": "regex", "regex_pattern": r"(\d+)"},
                    {"function": "take_first"},
                ],
            },
        ],
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {"version": 1},
    }
    choice = {
        "task": "parity",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(docs)}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "Is {{q}} even?",
        "doc_to_choice": ["yes", "no"],
        "doc_to_target": "{{ (a | int) % 2 }}",
        "metric_list": [
            {"metric": "acc", "aggregation": "mean", "higher_is_better": True},
            {"metric": "acc_norm", "aggregation": "mean", "higher_is_better": True},
        ],
        "metadata": {"version": 1},
    }
    for name, right, ordered in (("alpha", 0.7, rows), ("beta", 0.4, rows[::-1])):
        # The second model meets the same documents in another order, under other doc_ids.
        docs = Path(folder) / f"{name}.jsonl"
        docs.write_text("\n".join(map(json.dumps, ordered)))
        for one in (task, choice):
            one["dataset_kwargs"] = {"data_files": {"test": str(docs)}}
        done = simple_evaluate(
            model=Mock(name, right), tasks=[task, choice], log_samples=True, bootstrap_iters=0
        )
        tracker = EvaluationTracker(output_path=str(out))
        tracker.general_config_tracker.model_name_sanitized = name
        tracker.date_id = "2026-01-01T00-00-00.000000"
        for which, samples in done["samples"].items():
            tracker.save_results_samples(task_name=which, samples=samples)
        print({k: {m: v for m, v in r.items() if "," in m} for k, r in done["results"].items()})
