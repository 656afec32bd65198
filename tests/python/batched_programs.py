"""Loops whose iterations compute one element each, of which some do not depend on one another. Each
takes two square matrices."""

from __future__ import annotations

import numpy as np


def triangular_product(a, b):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] += np.dot(b[i + 1 :, i], a[i + 1 :, j])


def left_neighbour(a, b):
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] += a[i, j - 1]


def right_neighbour(a, b):
    for i in range(a.shape[0]):
        for j in range(a.shape[1] - 1):
            a[i, j] = a[i, j + 1] + b[i, j]


def row_above(a, b):
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] += a[i - 1, j - 1] * 2 + a[i - 1, j]


def left_of_a_triangle(a, b):
    for i in range(a.shape[0]):
        for j in range(i, a.shape[1]):
            a[i, j] -= a[i, :i] @ b[:i, j]


def across_the_diagonal(a, b):
    for i in range(a.shape[0]):
        for j in range(i, a.shape[1]):
            a[i, j] -= a[i, : i + 1] @ b[: i + 1, j]


def lu(a, b):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j] + 10
        for j in range(i, a.shape[1]):
            a[i, j] -= a[i, :i] @ a[:i, j]


def gram_schmidt(a, b):
    q, r = np.zeros_like(a), np.zeros((a.shape[1], a.shape[1]))
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


def backwards(a, b):
    n = a.shape[1]
    for i in range(a.shape[0]):
        for j in range(n - 1, -1, -1):
            a[i, j] = a[i, j] * 2 + b[j, i]
        for j in range(n - 1, i, -1):
            a[i, j] = a[i, j] * 2 + b[i, n - 1 - j]


def every_other(a, b):
    for i in range(a.shape[0]):
        for j in range(0, a.shape[1], 2):
            a[i, j] += b[j, i]


def mirrored(a, b):
    n = a.shape[1]
    for i in range(a.shape[0]):
        for j in range(n):
            a[i, n - 1 - j] += b[j, i]
        for j in range(n):
            a[i, n - 1 - j] = a[i, j] + b[j, i]


def several_writes(a, b):
    c = a.copy()
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] += b[j, i]
            a[i, j] *= a[i, j] + 1
            c[i, j] = a[i, j] - b[i, j]
            a[i, j] += c[i, j]
        for j in range(1, a.shape[1]):
            c[i, j] = a[i, j - 1] + b[j, i]
            a[i, j] = c[i, j] * 2
    return c


def overlapping_writes(a, b):
    for i in range(a.shape[0]):
        for j in range(a.shape[1] - 1):
            a[i, j] = b[i, j] + 1
            a[i, j + 1] = b[i, j] * 2


def under_a_condition(a, b):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if b[j, i] > 0.5:
                a[i, j] = b[j, i]


def growing_columns(a, b):
    sums = np.empty(a.shape[1])
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[:i, j] += b[i, j] * b[i, :i]
            sums[j] = b[:i, j] @ b[i, :i]
        a[i, :] += sums
        for j in range(a.shape[1]):
            a[:i, j] += a[i, j] * b[i, :i]


def bounds_that_cross(a, b):
    n = a.shape[0]
    for i in range(n):
        for j in range(2 * i, n):
            a[i, j] = b[j, i]


def outermost(a, b):
    sums, spans = np.zeros(a.shape[1]), np.zeros(a.shape[1])
    for j in range(a.shape[1]):
        sums[j] = np.sum(a[:, j] * b[j, :])
        spans[j] = np.max(a[:, j]) - np.min(b[j]) + a[j, j]
    return sums, spans


def exchanged(a, b):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j], a[j, i] = a[j, i], a[i, j]


def each_other(a, b):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = b[j, i] * 2
            b[j, i] = a[i, j] + 1
