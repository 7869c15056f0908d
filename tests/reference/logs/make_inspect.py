"""Write the inspect logs of this directory: python make_inspect.py OUT."""

import random
import sys
import tempfile

from inspect_ai import Task
from inspect_ai import eval as run
from inspect_ai.analysis import evals_df, samples_df
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import solver

out = sys.argv[1]
folder = tempfile.mkdtemp()
random.seed(1)
samples = [
    Sample(
        id=f"q{i:02d}",
        input=f"What is {i} + {i}?",
        target=str(2 * i),
        metadata={"topic": "odd" if i % 2 else "even"},
    )
    for i in range(20)
]


@solver
def answer(right, broken=()):
    async def solve(state, generate):
        if state.sample_id in broken and state.epoch == 2:
            raise RuntimeError("the sandbox went away")
        rng = random.Random(f"{right}-{state.sample_id}-{state.epoch}")
        text = state.target.text if rng.random() < right else "no idea"
        state.output = ModelOutput.from_content("mock", text)
        return state

    return solve


logs = []
for name, right, broken in (("mockllm/alpha", 0.8, ()), ("mockllm/beta", 0.6, ("q07",))):
    shuffled = list(samples)
    if broken:
        shuffled.reverse()
    task = Task(name="sums", dataset=shuffled, solver=answer(right, broken), scorer=match())
    done = run(
        task,
        model=name,
        epochs=2,
        log_dir=folder,
        display="none",
        fail_on_error=False,
        log_format="eval",
    )
    logs += done
df = samples_df([log.location for log in logs], quiet=True)
ev = evals_df([log.location for log in logs], quiet=True)
df = df.merge(ev[["eval_id", "model"]], on="eval_id") if "model" not in df else df
keep = [c for c in df.columns if c not in ("log",)]
df[keep].to_csv(f"{out}/inspect_samples.csv", index=False)
for log in logs:
    full = read_eval_log(log.location)
    for s in full.samples:
        s.events = []
        s.messages = []
        if s.error is not None:  # its traceback names directories of the machine
            s.error.traceback = s.error.traceback_ansi = ""
    name = log.eval.model.split("/")[1]
    write_eval_log(full, f"{out}/inspect_{name}.json", format="json")
    write_eval_log(full, f"{out}/inspect_{name}.eval", format="eval")
