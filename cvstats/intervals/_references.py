"""Sources that several methods share, as results quote them."""

from __future__ import annotations

BAYLE = "Bayle, Bayle, Janson and Mackey (2020), NeurIPS 33, arXiv:2007.12671"
BATES = (
    "Bates, Hastie and Tibshirani (2024), JASA 119(546), 1434-1445, "
    "doi:10.1080/01621459.2023.2197686"
)
GERAS = "Geras and Sutton (2013), ICML, PMLR 28(3), 1292-1300"
BENGIO = "Bengio and Grandvalet (2004), JMLR 5, 1089-1105"
RELATIVE_STABILITY = "Bayle, Janson and Mackey (2025), arXiv:2508.04409"
NADEAU = "Nadeau and Bengio (2003), Machine Learning 52, 239-281, doi:10.1023/A:1024068626366"
BOUCKAERT = "Bouckaert and Frank (2004), PAKDD, LNCS 3056, 3-12, doi:10.1007/978-3-540-24775-3_3"
