"""What each method needs, what it covers, what it promises, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cvstats.core.design import Design
from cvstats.errors import LogError
from cvstats.intervals import bootstrap_layouts, layouts
from cvstats.intervals.layouts import fold_level
from cvstats.intervals.needs import (
    clusters,
    five_times_two,
    folds,
    once,
    one_partition,
    one_source_out,
    partition,
    plain,
    several_logs,
    splits,
    test_set,
)

__all__ = ["METHODS", "Method", "fold_level", "require"]


OF_SCORES = ("conservative_z", "corrected_t", "five_by_two", "friedman", "nemenyi")
"""The methods that need no more than one number for each split."""


@dataclass(frozen=True)
class Method:
    """One entry: facts for the reader, and the test whether a log allows it."""

    name: str
    needs: str
    target: str
    guarantee: str
    fits: str
    reference: str
    problem: Callable[[Design], str | None]
    plan: str = ""
    """Which plan makes a log for it, where the words of ``problem`` do not tell."""
    of_groups: bool = False
    """Whether it is an interval whose sample are the sources and not the points."""

    def why_not(self, design: Design) -> str | None:
        """Say what is missing, and which plan makes it; None where the method applies."""
        if design.scores and self.name not in OF_SCORES:
            return (
                "the log holds one score for each split, and no losses of single points. Choose "
                "corrected_t or five_by_two, or read predictions instead of scores."
            )
        words = self.problem(design)
        if words is None or not self.plan or "cvstats.plans" in words:
            return words
        return f"{words} cvstats.plans.{self.plan} makes a log for {self.name}."


BAYLE = "Bayle, Bayle, Janson and Mackey (2020), NeurIPS 33, arXiv:2007.12671"
BATES = (
    "Bates, Hastie and Tibshirani (2024), JASA 119(546), 1434-1445, "
    "doi:10.1080/01621459.2023.2197686"
)
GERAS = "Geras and Sutton (2013), ICML, PMLR 28(3), 1292-1300"
BENGIO = "Bengio and Grandvalet (2004), JMLR 5, 1089-1105"
NADEAU = "Nadeau and Bengio (2003), Machine Learning 52, 239-281, doi:10.1023/A:1024068626366"
DIETTERICH = (
    "Dietterich (1998), Neural Computation 10(7), 1895-1923, doi:10.1162/089976698300017197"
)
ALPAYDIN = "Alpaydin (1999), Neural Computation 11(8), 1885-1892, doi:10.1162/089976699300016007"
BOUCKAERT = "Bouckaert and Frank (2004), PAKDD, LNCS 3056, 3-12, doi:10.1007/978-3-540-24775-3_3"
EFRON = "Efron and Tibshirani (1997), JASA 92(438), 548-560, doi:10.1080/01621459.1997.10474007"
JIANG = (
    "Jiang, Varma and Simon (2008), Statistical Applications in Genetics and Molecular Biology "
    "7(1), 8, doi:10.2202/1544-6115.1322"
)
NOMA = (
    "Noma, Shinozaki, Iba, Teramukai and Furukawa (2021), Statistics in Medicine 40(26), "
    "5691-5701, doi:10.1002/sim.9148"
)
AUSTERN = "Austern and Zhou (2020), Asymptotics of cross-validation, arXiv:2001.11111"

LIANG = "Liang and Zeger (1986), Biometrika 73(1), 13-22, doi:10.1093/biomet/73.1.13"
VIECHTBAUER = (
    "Cochran (1954), doi:10.2307/3001666; DerSimonian and Laird (1986), "
    "doi:10.1016/0197-2456(86)90046-2; Viechtbauer (2007), doi:10.1002/sim.2514"
)
LEI = "Lei (2020), JASA 115(532), 1978-1997, doi:10.1080/01621459.2019.1672556"
CORANI = "Corani and Benavoli (2015), Machine Learning 100, 285-304, doi:10.1007/s10994-015-5486-z"
MCNEMAR = "McNemar (1947), Psychometrika 12, 153-157, doi:10.1007/BF02295996"
COCHRAN = "Cochran (1950), Biometrika 37, 256-266, doi:10.1093/biomet/37.3-4.256"
DEMSAR = "Demsar (2006), JMLR 7, 1-30"

METHODS = {
    method.name: method
    for method in (
        Method(
            "holdout",
            "one test set",
            "risk of the trained model, over points drawn as the test points were",
            "exact as the test set grows, for independent test points",
            "1",
            NADEAU,
            test_set,
            plan="holdout",
        ),
        Method(
            "wald",
            "a K-fold partition, leave-one-out, or several repetitions of it",
            "average test error of the models trained in this cross-validation",
            "exact as the points grow, if the learner is stable; no promise about the risk at "
            "the full sample size",
            "K for each repetition",
            BAYLE,
            partition,
            plan="k_fold",
        ),
        Method(
            "naive",
            "a K-fold partition",
            "claimed: the expected risk",
            "none: dependent losses are taken for independent ones",
            "K for each repetition",
            BATES,
            partition,
            plan="k_fold",
        ),
        Method(
            "cv_t",
            "a K-fold partition with at least two folds",
            "claimed: the expected risk",
            "none: dependent fold means are taken for independent ones",
            "K for each repetition",
            BAYLE,
            folds,
            plan="k_fold",
        ),
        Method(
            "quadratic",
            "one K-fold partition with at least two folds",
            "expected risk at the size of the training folds",
            "heuristic: the variance estimator has the bias that its name states",
            "K",
            GERAS,
            one_partition,
            plan="k_fold",
        ),
        Method(
            "decompose",
            "a K-fold partition with at least two folds, or several repetitions of it",
            "components of the variance of one repetition's mean loss",
            "unbiased for the differences of components; the components themselves cannot be "
            "estimated from one log",
            "K for each repetition",
            BENGIO,
            folds,
            plan="repeated_k_fold",
        ),
        Method(
            "corrected_t",
            "two random splits or more, or a (repeated) K-fold partition",
            "expected risk at the size of the training sets",
            "heuristic: takes the correlation of two test sets to be the test share",
            "1 for each split, K for each repetition",
            f"{NADEAU}; for repeated folds {BOUCKAERT}",
            splits,
            plan="subsampling",
        ),
        Method(
            "conservative_z",
            "random splits of the data and of the halves of one or more divisions (levels "
            "'sample' and 'repetition')",
            "expected risk at the size of the training sets",
            "conservative in expectation: the variance is that of training sets of less than "
            "half the points",
            "J (2R + 1) for J splits and R divisions",
            NADEAU,
            layouts.halves,
        ),
        Method(
            "five_by_two",
            "five repetitions of two folds",
            "expected risk at half the points",
            "heuristic, in simple cases conservative",
            "10",
            f"{DIETTERICH}; for test='f' {ALPAYDIN}",
            five_times_two,
            plan="five_by_two",
        ),
        Method(
            "nested_cv",
            "K-fold cross-validation in which each fold's training folds are cross-validated "
            "again (levels 'outer' and 'fold')",
            "risk of the model fitted to all data; also taken for the expected risk",
            "heuristic: an estimated mean squared error about that risk, kept within a range",
            "K (K + 1) / 2 for each repetition",
            BATES,
            layouts.nested,
        ),
        Method(
            "replace_one",
            "cross-validation of the data, of a half, and of the half with each point replaced "
            "in turn (levels 'sample' and 'fold')",
            "expected risk at the size of the training folds",
            "exact as the points grow for one partition, if the learner is stable in second "
            "order; no theorem for several",
            "2K + (n // 2)(K - 1) for each repetition",
            AUSTERN,
            layouts.replaced,
        ),
        Method(
            "bootstrap_oob",
            "bootstrap samples with the losses of their points out of bag (levels 'repetition', "
            "'point' and 'count')",
            "expected risk of training on a bootstrap sample, about 0.632 n different points",
            "heuristic",
            "B",
            EFRON,
            bootstrap_layouts.bootstrap,
        ),
        Method(
            "bootstrap_632",
            "bootstrap samples with the losses of their points out of bag, and the fit on the "
            "sample itself (levels 'repetition', 'point' and 'count')",
            "expected risk",
            "heuristic: the standard error is that of bootstrap_oob, in proportion",
            "B + 1",
            EFRON,
            bootstrap_layouts.with_own_fit,
        ),
        Method(
            "case_bootstrap",
            "bootstrap samples whose points were left out in turn, with all their copies (levels "
            "'repetition', 'point' and 'count')",
            "expected risk",
            "heuristic",
            "about 0.632 n B; n more with leave_one_out",
            JIANG,
            bootstrap_layouts.case,
        ),
        Method(
            "location_shifted",
            "bootstrap samples with the losses of their points in and out of bag, and the fit on "
            "the sample itself (levels 'repetition', 'point' and 'count')",
            "expected risk",
            "heuristic: the spread is that of apparent errors",
            "B + 1",
            NOMA,
            bootstrap_layouts.with_own_fit,
        ),
        Method(
            "two_stage",
            "bootstrap samples of the data and of resampled data sets, with the fit on each of "
            "them itself (levels 'sample', 'repetition', 'point' and 'count')",
            "expected risk",
            "heuristic",
            "(B_outer + 1) (B_inner + 1)",
            NOMA,
            bootstrap_layouts.two_stage,
        ),
        Method(
            "out_of_source",
            "a log that leaves one source out at a time (level 'source'; no 'fold', or folds "
            "that are sources)",
            "expected loss on a new source, or the mean loss on these sources (target=)",
            "exact for a new source as sources grow, if they are drawn independently; heuristic "
            "for these sources",
            "one for each source",
            GERAS,
            one_source_out,
            plan="leave_one_source_out",
            of_groups=True,
        ),
        Method(
            "clustered",
            "a level that names independent groups (source), two groups or more",
            "mean loss over points of groups drawn as these were, of models trained on other "
            "groups",
            "exact as groups grow, if they are independent and none stands in training and in "
            "test folds",
            "as the log has",
            LIANG,
            clusters,
            of_groups=True,
        ),
        Method(
            "source_estimators",
            "a log that leaves one source out at a time (level 'source'; no 'fold', or folds "
            "that are sources)",
            "variance of the mean over these sources, from one data set to another",
            "none: each estimator has the bias that its name states",
            "one for each source",
            GERAS,
            one_source_out,
        ),
        Method(
            "source_components",
            "two independent logs or more, each leaving out the same sources one at a time",
            "variances and covariances of losses, by source",
            "unbiased for independent logs of one design",
            "one for each source and log",
            GERAS,
            several_logs,
        ),
        Method(
            "heterogeneity",
            "a level that names independent groups (source), two groups or more",
            "standard deviation of the expected losses of the groups",
            "exact as the points of each group grow, for groups that differ normally",
            "as the log has",
            VIECHTBAUER,
            clusters,
        ),
        Method(
            "best_set",
            "one test set or a K-fold partition, repeated or not, and two models or more",
            "the models with the smallest average test error of those trained in this "
            "cross-validation",
            "holds each best model as the points grow, if the learners are stable",
            "K for each model and repetition",
            LEI,
            partition,
        ),
        Method(
            "rope",
            "two random splits or more, or a (repeated) K-fold partition",
            "difference of the expected risks at the size of the training sets",
            "heuristic: takes the correlation of two test sets to be the test share",
            "1 for each split, K for each repetition",
            CORANI,
            splits,
        ),
        Method(
            "mcnemar",
            "losses of 0 and 1 of each point, evaluated once",
            "difference of the error rates of the models that were trained",
            "exact given the models; over several folds as the points grow",
            "1 for a test set, K for folds",
            MCNEMAR,
            once,
        ),
        Method(
            "cochran_q",
            "losses of 0 and 1 of each point, evaluated once",
            "differences of the error rates of the models that were trained",
            "exact as the points grow on which models disagree",
            "1 for a test set, K for folds",
            COCHRAN,
            once,
        ),
        Method(
            "friedman",
            "a level that names data sets, two or more, and three models or more",
            "mean ranks of the models over data sets drawn as these were",
            "exact as the data sets grow, if they are independent",
            "as the log has",
            DEMSAR,
            plain,
        ),
        Method(
            "nemenyi",
            "a level that names data sets, two or more, and three models or more",
            "differences of mean ranks over data sets drawn as these were",
            "exact as the data sets grow, if they are independent",
            "as the log has",
            DEMSAR,
            plain,
        ),
    )
}


def require(name: str, design: Design) -> None:
    """Refuse a log that a method cannot answer for, in words.

    Raises
    ------
    LogError
        What the method needs, what this log is, and what to type instead.
    """
    method = METHODS[name]
    if (words := method.why_not(design)) is not None:
        raise LogError(f"{name} needs {method.needs}; {words}")
