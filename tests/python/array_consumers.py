"""What SciPy and scikit-learn compute of rune_jit.Arrays when they are asked to use the array API.

SciPy reads SCIPY_ARRAY_API when it is imported, so test_ecosystem.py runs this as a process of its
own. It prints a line of JSON: by case, None or what is wrong. A case gets the arrays as Arrays, and
as NumPy's; the results must agree and, unless they are numbers, be Arrays."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import rune_jit

Function = Callable[[Any, Any], Any]


def scipys() -> dict[str, Function]:
    import scipy.cluster.vq as vq
    from scipy import fft, integrate, ndimage, signal, special, stats
    from scipy.optimize import elementwise, rosen
    from scipy.spatial import distance

    sections = signal.butter(4, 0.3, output="sos")
    return {
        "special.expit": lambda x, y: special.expit(x),
        "special.logsumexp": lambda x, y: special.logsumexp(x, axis=0),
        "special.gammaln": lambda x, y: special.gammaln(x + 1),
        "special.betainc": lambda x, y: special.betainc(x, x, x),
        "stats.zscore": lambda x, y: stats.zscore(x),
        "stats.skew": lambda x, y: stats.skew(x),
        "stats.kurtosis": lambda x, y: stats.kurtosis(x),
        "stats.ttest_ind": lambda x, y: tuple(stats.ttest_ind(x[:9], x[9:])),
        "stats.pearsonr": lambda x, y: tuple(stats.pearsonr(x[:, 0], x[:, 1])),
        "stats.entropy": lambda x, y: stats.entropy(x),
        "signal.convolve": lambda x, y: signal.convolve(x[:, 0], x[:5, 1]),
        "signal.hilbert": lambda x, y: signal.hilbert(x[:, 0]),
        "signal.lfilter": lambda x, y: signal.lfilter(x[:2, 0], x[:2, 1] + 1, x[:, 2]),
        "signal.sosfilt": lambda x, y: signal.sosfilt(x[:1, :1] * 0 + sections, x[:, 0]),
        "fft.rfft": lambda x, y: fft.rfft(x, axis=0),
        "fft.dct": lambda x, y: fft.dct(x),
        "cluster.vq.vq": lambda x, y: vq.vq(x, x[:3]),
        "spatial.distance.pdist": lambda x, y: distance.pdist(x),
        "ndimage.gaussian_filter": lambda x, y: ndimage.gaussian_filter(x, 1.0),
        "ndimage.label": lambda x, y: ndimage.label(x > 0.5)[0],
        "integrate.trapezoid": lambda x, y: integrate.trapezoid(x, axis=0),
        "integrate.tanhsinh": lambda x, y: (
            integrate.tanhsinh(np.square, x[:, 0] * 0, x[:, 0]).integral
        ),
        "optimize.rosen": lambda x, y: rosen(x),
        "optimize.find_root": lambda x, y: (
            elementwise.find_root(lambda q: q**2 - 0.5, (x[:, 0] * 0, x[:, 0] * 0 + 1)).x
        ),
    }


def scikit_learns() -> dict[str, Function]:
    import sklearn
    from sklearn import metrics, preprocessing
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import Ridge
    from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
    from sklearn.mixture import GaussianMixture
    from sklearn.model_selection import cross_val_score, train_test_split
    from sklearn.pipeline import make_pipeline

    sklearn.set_config(array_api_dispatch=True)

    def discriminant() -> Any:
        return LinearDiscriminantAnalysis(solver="svd")

    cases: dict[str, Function] = {
        f"preprocessing.{name}": lambda x, y, name=name: getattr(
            preprocessing, name
        )().fit_transform(x)
        for name in ("StandardScaler", "MinMaxScaler", "Normalizer", "PolynomialFeatures")
    }
    return cases | {
        "preprocessing.LabelEncoder": lambda x, y: preprocessing.LabelEncoder().fit_transform(y),
        "decomposition.PCA": lambda x, y: PCA(2, svd_solver="full").fit(x).explained_variance_,
        "mixture.GaussianMixture": lambda x, y: (
            GaussianMixture(2, init_params="random", reg_covar=0.1, random_state=0)
            .fit(x)
            .covariances_
        ),
        "linear_model.Ridge": lambda x, y: Ridge(solver="svd").fit(x, y * 1.0).predict(x),
        "LinearDiscriminantAnalysis": lambda x, y: discriminant().fit(x, y).predict_proba(x),
        "pipeline": lambda x, y: (
            make_pipeline(preprocessing.StandardScaler(), discriminant()).fit(x, y).predict(x)
        ),
        "model_selection.train_test_split": lambda x, y: tuple(
            train_test_split(x, y, random_state=0)
        ),
        "model_selection.cross_val_score": lambda x, y: list(
            cross_val_score(Ridge(solver="svd"), x, y * 1.0)
        ),
        "metrics.accuracy_score": lambda x, y: metrics.accuracy_score(y, 1 - y),
        "metrics.confusion_matrix": lambda x, y: metrics.confusion_matrix(y, 1 - y),
        "metrics.log_loss": lambda x, y: metrics.log_loss(y, x[:, 0]),
        "metrics.r2_score": lambda x, y: metrics.r2_score(x[:, 0], x[:, 1]),
        "metrics.pairwise": lambda x, y: (euclidean_distances(x, x[:3] + 1), rbf_kernel(x)),
    }


def fault(function: Function) -> str | None:
    random = np.random.default_rng(0)
    x, y = random.random((20, 4)), np.arange(20) % 3 // 2
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = function(x.copy(), y.copy())
            found = function(rune_jit.asarray(x), rune_jit.asarray(y))
        pairs = (
            [(found, wanted)]
            if not isinstance(wanted, tuple | list)
            else zip(found, wanted, strict=True)
        )
        for ours, theirs in pairs:
            if not isinstance(ours, rune_jit.Array | int | float):
                return f"a result is {type(ours).__name__}"
            np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6, atol=1e-9)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    cases = {"scipy": scipys, "sklearn": scikit_learns}[sys.argv[1]]()
    print(json.dumps({name: fault(function) for name, function in cases.items()}))
