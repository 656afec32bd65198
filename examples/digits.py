"""Recognises handwritten digits with a small neural network, on NumPy and compiled by rune_jit.

    pip install '.[examples]' && python examples/digits.py [--device cpu]

The network is trained here, with plain NumPy, on scikit-learn's bundled digits; what is compiled is
its inference. Prints the accuracy of both on digits it has not seen, and how often they agree.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from sklearn.datasets import load_digits

import rune_jit


def softmax(scores):
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def predict(parameters, images):
    """Probabilities of the ten digits, for images[n, 64]."""
    hidden = images
    for weights, bias in parameters[:-1]:
        hidden = np.maximum(hidden @ weights + bias, 0)
    weights, bias = parameters[-1]
    return softmax(hidden @ weights + bias)


def train(images, labels, sizes=(64, 96, 48, 10), epochs=40, batch=64, rate=0.1, seed=0):
    """Stochastic gradient descent with momentum on the cross-entropy."""
    random = np.random.default_rng(seed)
    parameters, velocity = [], []
    for fan_in, fan_out in itertools.pairwise(sizes):
        weights = random.normal(0, np.sqrt(2 / fan_in), (fan_in, fan_out)).astype(np.float32)
        parameters.append((weights, np.zeros(fan_out, np.float32)))
        velocity.append([np.zeros_like(weights), np.zeros(fan_out, np.float32)])
    targets = np.eye(sizes[-1], dtype=np.float32)[labels]
    for _ in range(epochs):
        order = random.permutation(len(images))
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            activations = [images[rows]]
            for weights, bias in parameters[:-1]:
                activations.append(np.maximum(activations[-1] @ weights + bias, 0))
            weights, bias = parameters[-1]
            gradient = (softmax(activations[-1] @ weights + bias) - targets[rows]) / len(rows)
            for layer in reversed(range(len(parameters))):
                weights, bias = parameters[layer]
                steps = (activations[layer].T @ gradient, gradient.sum(axis=0))
                gradient = (gradient @ weights.T) * (activations[layer] > 0)
                for moving, step in zip(velocity[layer], steps, strict=True):
                    moving *= 0.9
                    moving -= rate * step
                parameters[layer] = (weights + velocity[layer][0], bias + velocity[layer][1])
    return parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    digits = load_digits()
    images, labels = (digits.data / 16).astype(np.float32), digits.target
    order = np.random.default_rng(1).permutation(len(images))
    seen, unseen = order[:1297], order[1297:]
    parameters = train(images[seen], labels[seen])

    fast_predict = rune_jit.jit(predict, device=options.device)
    expected = predict(parameters, images[unseen])
    got = fast_predict(parameters, images[unseen])
    lowered = fast_predict.lower(parameters, images[unseen])
    agreement = np.mean(got.argmax(axis=1) == expected.argmax(axis=1))
    print(f"digits       {len(seen)} to train on, {len(unseen)} to test on")
    for name, probabilities in (("NumPy", expected), ("rune_jit", got)):
        accuracy = np.mean(probabilities.argmax(axis=1) == labels[unseen])
        print(f"{name:12} {accuracy:.2%} right")
    difference = np.abs(got - expected).max()
    print(f"agreement    {agreement:.2%}, probabilities differ by at most {difference:.1e}")
    print(f"kernels      {len(lowered.kernels)}")


if __name__ == "__main__":
    main()
