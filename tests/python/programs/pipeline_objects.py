# mypy: ignore-errors
# ruff: noqa
import numpy as np


class Step:
    def fit(self, X, y=None):
        return self

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)


class Scaler(Step):
    def fit(self, X, y=None):
        self.mean_, self.scale_ = X.mean(0), X.std(0)
        self.scale_[self.scale_ == 0] = 1
        return self

    def transform(self, X):
        if not hasattr(self, "mean_"):
            raise RuntimeError(f"{type(self).__name__} is not fitted")
        return (X - self.mean_) / self.scale_


class Poly(Step):
    def __init__(self, degree=2):
        self.degree = degree

    def transform(self, X):
        return np.hstack([X**d for d in range(1, self.degree + 1)] + [np.ones((len(X), 1))])


class OneHot(Step):
    def fit(self, X, y=None):
        self.cats_ = [np.unique(c) for c in X.T]
        return self

    def transform(self, X):
        return np.concatenate(
            [(X[:, [j]] == c).astype(float) for j, c in enumerate(self.cats_)], axis=1
        )


class Ridge:
    def __init__(self, alpha=1.0, verbose=False):
        self.alpha, self.verbose = alpha, verbose

    def get_params(self):
        return {k: v for k, v in vars(self).items() if not k.endswith("_")}

    def fit(self, X, y):
        self.coef_ = np.linalg.solve(X.T @ X + self.alpha * np.eye(X.shape[1]), X.T @ y)
        if self.verbose:
            print("coef", np.round(self.coef_, 3))
        return self

    def predict(self, X):
        return X @ self.coef_

    def score(self, X, y):
        return 1 - ((y - self.predict(X)) ** 2).sum() / ((y - y.mean()) ** 2).sum()


class Pipeline:
    def __init__(self, *steps):
        self.steps = steps

    def fit(self, X, y):
        for s in self.steps[:-1]:
            X = s.fit_transform(X, y)
        self.steps[-1].fit(X, y)
        return self

    def predict(self, X):
        for s in self.steps[:-1]:
            X = s.transform(X)
        return self.steps[-1].predict(X)


def kfold(n, k, seed=None):
    idx = np.random.RandomState(seed).permutation(n) if seed is not None else np.arange(n)
    for f in np.array_split(idx, k):
        yield np.setdiff1d(idx, f), f


def cross_val(X, y, degree, k, alpha):
    out = []
    for tr, te in kfold(len(X), k, 0):
        p = Pipeline(Scaler(), Poly(degree), Ridge(alpha, verbose=len(te) == 2)).fit(X[tr], y[tr])
        out.append(np.mean((p.predict(X[te]) - y[te]) ** 2))
    return np.array(out), p, p.steps[-1].get_params()


def grid(X, y):
    best = min(((cross_val(X, y, d, 2, a)[0].mean(), d, a) for d in (1, 2) for a in (0.1, 1.0)))
    return best


def unfitted(X):
    return Scaler().transform(X)


CALLS = [
    ("cross_val", lambda r: (r.random((9, 2)), r.random(9), 2, 3, 1.0)),
    ("grid", lambda r: (r.random((8, 2)), r.random(8))),
    ("unfitted", lambda r: (r.random((2, 2)),)),
    ("cross_val", lambda r: (r.random((6, 1)), r.random(6), 1, 3, 1)),
]
