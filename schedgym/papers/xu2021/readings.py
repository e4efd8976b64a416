"""What the paper leaves open about its algorithm, its norm and its experiments."""

from __future__ import annotations

from schedgym.papers.readings import OpenPoint

__all__ = ["ESTIMATION", "HORIZON", "NORM", "START"]

#: the policies' option ``lambda0``
START = OpenPoint(
    "start of lambda",
    "lambda_j(a_j + 1) is initialised when job j arrives (Algorithm 1, line 2)",
    "at which value: above all weights the smallest demand comes first and prices break ties, from 0 prices "
    "decide; from the weight of its first slot the norm is within 0.1% of that from 0",
    {"lambda from above all weights": 1e11, "lambda from 0": 0.0},
    "lambda from above all weights",
)
#: the metric of the flowtimes, for k = 2
NORM = OpenPoint(
    "norm of the flowtimes",
    "the metric is the l_k norm of the flowtimes, which is also what f_j^k is called (section II-B)",
    "whether the k-th root of the sum is taken",
    {"the root of the sum of squares": "l2", "the sum of squares": "cost"},
    "the root of the sum of squares",
)
#: the policies' option ``gamma``
HORIZON = OpenPoint(
    "Gamma",
    "Gamma is 4000 slots (section VI-A) and at least what Eq. 27 gives (Theorem 3), which is more",
    "which of the two the algorithm uses; Eq. 27 is taken of the jobs that have arrived",
    {"Gamma 4000": 4000, "Gamma by Eq. 27": "seen"},
    "Gamma 4000",
)
#: the environment's parameter ``estimation``
ESTIMATION = OpenPoint(
    "wrong declarations",
    "the declared demand differs from the actual one by a random factor (section VI-D)",
    "what becomes of a job that gets what it declares; where declared cores are held, used or not "
    '(estimation "waste"), OCORP has about twice the norm of SRVF',
    {
        "declarations change the order only": "order",
        "no job gets more than it declares": "under",
    },
    "declarations change the order only",
)
