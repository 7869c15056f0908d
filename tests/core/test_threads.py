"""Threads over blocks: each task once, in order, by all threads that there are."""

import re
import threading
import time

import numpy as np
import pandas as pd
import pytest

import cvstats
from cvstats import LogError
from cvstats.core.threads import LONGEST, block_bounds, ordered_map


@pytest.mark.parametrize("threads", ["1", "2", "4"])
@pytest.mark.parametrize("tasks", [0, 1, 2, 7, 40, 8 * LONGEST])
@pytest.mark.parametrize("slow", ["first", "odd", "none"])
def test_each_task_is_done_once_and_answers_in_order(monkeypatch, threads, tasks, slow):
    """Whichever thread waits for which: a task done twice would count its rows twice."""
    monkeypatch.setenv("CVSTATS_THREADS", threads)
    done = np.zeros(tasks, int)

    def work(task: int) -> int:
        if (slow == "first" and task == 0) or (slow == "odd" and tasks < 50 and task % 2):
            time.sleep(0.002)
        done[task] += 1
        return task

    assert list(ordered_map(work, tasks)) == list(range(tasks))
    assert (done == 1).all()


def test_all_threads_take_part_and_not_one_more(monkeypatch):
    """Two tasks meet at a barrier: alone, a thread would wait there until the barrier breaks."""
    monkeypatch.setenv("CVSTATS_THREADS", "2")
    both = threading.Barrier(2, timeout=20)
    who = set()

    def work(task: int) -> None:
        both.wait()
        who.add(threading.get_ident())

    list(ordered_map(work, 8))
    assert len(who) == 2
    assert threading.get_ident() in who


@pytest.mark.parametrize("threads", ["1", "3"])
def test_what_a_task_raises_reaches_who_asked(monkeypatch, threads):
    monkeypatch.setenv("CVSTATS_THREADS", threads)

    def work(task: int) -> int:
        if task == 5:
            raise ValueError("task five")
        return task

    found: list[int] = []
    with pytest.raises(ValueError, match="task five"):
        found.extend(ordered_map(work, 40))
    assert found == list(range(len(found)))
    assert len(found) <= 5


def test_who_stops_asking_leaves_no_thread_behind(monkeypatch):
    monkeypatch.setenv("CVSTATS_THREADS", "3")
    before = threading.active_count()
    answers = ordered_map(lambda task: task, 1_000)
    assert next(answers) == 0
    answers.close()
    assert threading.active_count() == before


PLAIN = pd.Series(np.arange(6.0), pd.Index(range(6), name="point"))


@pytest.mark.parametrize("asked", ["abc", "0", "-1", "1.5", "two", "²"])
def test_a_number_of_threads_that_is_none(monkeypatch, asked):
    monkeypatch.setenv("CVSTATS_THREADS", asked)
    words = (
        f"the environment variable CVSTATS_THREADS is '{asked}'. Expected a whole number of 1 or "
        f"more. Type export CVSTATS_THREADS=2; or unset CVSTATS_THREADS, for a thread on each core."
    )
    with pytest.raises(LogError, match=f"^{re.escape(words)}$"):
        cvstats.naive(PLAIN)


@pytest.mark.parametrize("asked", ["1", " 2 ", "64", "", " "])
def test_a_number_of_threads(monkeypatch, asked):
    expected = cvstats.naive(PLAIN)
    monkeypatch.setenv("CVSTATS_THREADS", asked)
    pd.testing.assert_frame_equal(cvstats.naive(PLAIN), expected)


def test_spans_cover_all_rows():
    assert block_bounds(7, 3) == block_bounds(7, 13, 4) == [(0, 3), (3, 6), (6, 7)]
    assert block_bounds(2, 3, 4) == block_bounds(2, 1, 0) == [(0, 1), (1, 2)]
    assert block_bounds(0, 3) == []


@pytest.mark.parametrize("most", [1, 3, 40])
def test_few_results_wait_for_their_turn(monkeypatch, most):
    monkeypatch.setenv("CVSTATS_THREADS", "3")
    done, finished, waiting = threading.Lock(), 0, []

    def work(task: int) -> int:
        nonlocal finished
        with done:
            finished += 1
        return task

    for taken, task in enumerate(ordered_map(work, 200, most)):
        assert task == taken
        time.sleep(0.0005)
        with done:
            waiting.append(finished - taken)
    assert max(waiting) <= most + 3  # and one more in the hands of each thread
