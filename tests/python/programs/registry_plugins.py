# mypy: ignore-errors
# ruff: noqa
import numpy as np

REGISTRY = {}


def register(name=None, **meta):
    def deco(f):
        REGISTRY[name or f.__name__] = (f, meta)
        return f

    return deco


@register(inplace=False)
def relu(x):
    return np.maximum(x, 0)


@register("leaky", slope=0.1)
def leaky_relu(x, slope):
    return np.where(x > 0, x, slope * x)


@register(inplace=True)
def hardsig(x):
    x *= 0.2
    x += 0.5
    np.clip(x, 0, 1, out=x)
    return x


class Meta(type):
    kinds = {}

    def __new__(m, name, bases, ns):
        c = super().__new__(m, name, bases, ns)
        if bases:
            m.kinds[name.lower()] = c
        return c


class Act(metaclass=Meta):
    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)

    def apply(self, x):
        raise NotImplementedError(type(self).__name__)


class Swish(Act):
    beta = 1.0

    def apply(self, x):
        return x / (1 + np.exp(-self.beta * x))


class Broken(Act):
    pass


def run(names, x):
    out = []
    for n in names:
        if n in REGISTRY:
            f, meta = REGISTRY[n]
            kw = {k: v for k, v in meta.items() if k != "inplace"}
            y = f(x.copy() if meta.get("inplace") else x, **kw)
        else:
            y = Meta.kinds[n]().apply(x)
        out.append(y)
    return out


CALLS = [
    ("run", lambda r: (["relu", "leaky", "hardsig", "swish"], r.normal(size=4))),
    ("run", lambda r: (["broken"], r.normal(size=2))),
    ("run", lambda r: (["nope"], r.normal(size=2))),
    ("run", lambda r: (("hardsig",), r.normal(size=(2, 2)))),
]
