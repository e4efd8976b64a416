"""The points that the paper leaves open on its algorithm, its norm and its experiments."""

from __future__ import annotations

from schedgym.papers.readings import OpenPoint

#: the policies' option ``lambda0``
START = OpenPoint(
    "start of lambda",
    "lambda_j(a_j + 1) is initialised when job j arrives (Algorithm 1, line 2)",
    "the value: if lambda begins above all weights, the smallest demand comes first and prices only "
    "break ties; if it begins at 0, prices decide; if it begins at the weight of the first slot, the "
    "norm is within 0.1% of that with 0",
    {"lambda from above all weights": 1e11, "lambda from 0": 0.0},
    "lambda from above all weights",
)
#: the metric of the flowtimes, for k = 2
NORM = OpenPoint(
    "norm of the flowtimes",
    "the metric is the l_k norm of the flowtimes, but the term f_j^k has this name, too (section II-B)",
    "whether the k-th root of the sum is taken",
    {"the root of the sum of squares": "l2", "the sum of squares": "cost"},
    "the root of the sum of squares",
)
#: the policies' option ``gamma``
HORIZON = OpenPoint(
    "Gamma",
    "Gamma is 4000 slots (section VI-A), and Gamma is at least the value of Eq. 27 (Theorem 3), which is "
    "larger",
    "which of the two the algorithm uses (Eq. 27 is computed for the jobs that have arrived)",
    {"Gamma 4000": 4000, "Gamma by Eq. 27": "seen"},
    "Gamma 4000",
)
#: the environment's parameter ``estimation``
ESTIMATION = OpenPoint(
    "wrong declarations",
    "the declared demand differs from the actual one by a random factor (section VI-D)",
    "how many cores a job with a wrong declaration gets; if it holds its declared cores even if it "
    'cannot use them (estimation "waste"), OCORP has about twice the norm of SRVF',
    {
        "declarations change the order only": "order",
        "no job gets more than it declares": "under",
    },
    "declarations change the order only",
)
