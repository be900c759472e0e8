"""What follows a linear layer in a block, forwards and backwards, each in one compiled pass.

A small net spends most of its time on a processor not in products of matrices but in ReLU, batch norm and dropout:
dozens of short operations, and one random number per unit. Here they are two loops per block.
"""

from __future__ import annotations

import numpy as np

from survscore._utils.kernels import compiled, inlined

DRAWS = 1 << 16  # dropout compares 16 random bits with a threshold


@inlined
def _mixed(z):
    """Return 64 bits that look random, from a counter (splitmix64)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def forward(x, gamma, beta, running_mean, running_var, momentum, epsilon, threshold, seed, keep, mean, inverse, out):
    """Apply ReLU to `x` in place, and fill `out` with its batch norm after dropout.

    `keep`, `mean` and `inverse` (one over the standard deviation) are filled for the way back.
    """
    n, width = x.shape
    sums = np.zeros(width)
    for i in range(n):
        for j in range(width):
            value = max(x[i, j], np.float32(0.0))
            x[i, j] = value
            sums[j] += value
    squares = np.zeros(width)
    for j in range(width):
        mean[j] = sums[j] / n
    for i in range(n):
        for j in range(width):
            deviation = x[i, j] - mean[j]
            squares[j] += deviation * deviation
    scale, shift = np.empty(width, dtype=np.float32), np.empty(width, dtype=np.float32)
    for j in range(width):
        variance = squares[j] / n
        inverse[j] = 1.0 / np.sqrt(variance + epsilon)
        running_mean[j] += momentum * (mean[j] - running_mean[j])
        running_var[j] += momentum * (squares[j] / (n - 1) - running_var[j])
        scale[j] = gamma[j] * inverse[j]
        shift[j] = beta[j] - mean[j] * scale[j]
    raised = np.float32(DRAWS / (DRAWS - threshold))
    draws = np.empty((width + 3) // 4, dtype=np.uint64)
    bits = draws.view(np.uint16)
    least = np.uint16(threshold)
    counter = np.uint64(seed)
    for i in range(n):
        if threshold > 0:
            for k in range(draws.size):
                draws[k] = _mixed(counter + np.uint64(k) * np.uint64(0x9E3779B97F4A7C15))
            counter += np.uint64(draws.size) * np.uint64(0x9E3779B97F4A7C15)
            for j in range(width):
                keep[i, j] = raised if bits[j] >= least else np.float32(0.0)
                out[i, j] = (x[i, j] * scale[j] + shift[j]) * keep[i, j]
        else:
            for j in range(width):
                keep[i, j] = raised
                out[i, j] = x[i, j] * scale[j] + shift[j]


@compiled
def backward(gradient, x, gamma, keep, mean, inverse, d_gamma, d_beta, d_bias):
    """Turn the gradient of a block's output, in place, into that of its linear layer's output; fill the weights'."""
    n, width = x.shape
    sums, products = np.zeros(width), np.zeros(width)
    for i in range(n):
        for j in range(width):
            g = gradient[i, j] * keep[i, j]
            gradient[i, j] = g
            sums[j] += g
            products[j] += g * ((x[i, j] - mean[j]) * inverse[j])
    first, second = np.empty(width, dtype=np.float32), np.empty(width, dtype=np.float32)
    third = np.empty(width, dtype=np.float32)
    for j in range(width):
        d_beta[j], d_gamma[j] = sums[j], products[j]
        first[j] = gamma[j] * inverse[j]
        second[j] = sums[j] / n
        third[j] = products[j] / n * inverse[j]
    biases = np.zeros(width)
    for i in range(n):
        for j in range(width):
            d = first[j] * (gradient[i, j] - second[j] - (x[i, j] - mean[j]) * third[j])
            d = d if x[i, j] > 0 else np.float32(0.0)
            gradient[i, j] = d
            biases[j] += d
    for j in range(width):
        d_bias[j] = biases[j]
