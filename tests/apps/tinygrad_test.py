#!/usr/bin/env python3
"""tinygrad_test.py buffers|images: tinygrad's operators with its OpenCL backend on Polder, checked against NumPy; `images` has it keep its tensors
in images of buffers where their shapes permit. tinygrad generates the kernels, so this is also a test of generated OpenCL C."""
import os
import sys
import tempfile

SKIPPED = 77
WITH_IMAGES = sys.argv[1:] == ["images"]
sys.path.insert(0, os.environ.get("POLDER_PYTHON_APPS", ""))
scratch = tempfile.TemporaryDirectory()
os.environ.update(DEV="CL", IMAGE="1" if WITH_IMAGES else "0", CACHEDB=os.path.join(scratch.name, "cache.db"))
try:
    import numpy as np
    from scipy import signal, special
    from tinygrad import Context, Tensor, dtypes
    from tinygrad.nn.optim import SGD
    from tinygrad.runtime import ops_cl
except ImportError as error:
    print(f"skipped: {error} (PyPI; tools/setup.sh)")
    sys.exit(1 if os.environ.get("POLDER_PYTHON_APPS") else SKIPPED)

rng = np.random.default_rng(7)
sources = []
compile_source = ops_cl.CLCompiler.compile


def record_source(self, source):
    sources.append(source)
    return compile_source(self, source)


ops_cl.CLCompiler.compile = record_source


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def same(name, found, expected, tolerance=1e-5):
    found = found.numpy()
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=name)
    assert found.shape == np.shape(expected), name


def elementwise():
    x, y = normal(33, 52), normal(33, 52)
    a, b = Tensor(x), Tensor(y)
    same("polynomial", (a * b + 2 * a - b / 3).contiguous(), x * y + 2 * x - y / 3)
    same("logarithm", a.abs().log() + b.exp().sqrt(), np.log(np.abs(x)) + np.sqrt(np.exp(y)))
    same("angles", a.sin() * b.cos() + a.tanh(), np.sin(x) * np.cos(y) + np.tanh(x))
    same("activations", a.sigmoid() + b.relu() + a.gelu(),
         special.expit(x) + np.maximum(y, 0) + 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))
    same("selection", (a > b).where(a, -b).maximum(0.25), np.maximum(np.where(x > y, x, -y), 0.25))
    same("broadcast", a + Tensor(y[0]) * Tensor(x[:, :1]), x + y[0] * x[:, :1])
    n, m = rng.integers(-1000, 1000, (3, 77)), rng.integers(1, 50, (3, 77))
    i, j = Tensor(n, dtype=dtypes.int32), Tensor(m, dtype=dtypes.int32)
    same("integers", (i * j - i) // j, (n * m - n) // m)
    same("bits", (i & 255) ^ (j << 3), (n & 255) ^ (m << 3))
    same("conversions", (a * 100).cast(dtypes.int8).cast(dtypes.float32), (x * 100).astype(np.int32).astype(np.int8))
    same("half", (a.half() + b.half()).float(), (x.astype(np.float16) + y.astype(np.float16)).astype(np.float32), 2e-3)


def reductions():
    x = normal(24, 7, 60)
    a = Tensor(x)
    same("all", a.sum(), x.sum(), 1e-3)
    for axis in (0, 1, 2, (0, 2)):
        same(f"sum {axis}", a.sum(axis), x.sum(axis), 1e-4)
        same(f"max {axis}", a.max(axis), x.max(axis))
    same("mean, variance", a.mean(2) + a.var(2), x.mean(2) + x.var(2, ddof=1), 1e-4)
    same("argmax", a.argmax(1), x.argmax(1))
    same("softmax", a.softmax(2), special.softmax(x, 2))
    same("logsumexp", a.logsumexp(1), special.logsumexp(x, 1))
    same("cumsum", a.cumsum(2), x.cumsum(2), 1e-4)
    same("sort", Tensor(x[0]).sort(1)[0], np.sort(x[0], 1))


def movement():
    x = normal(12, 20, 8)
    a = Tensor(x)
    same("permute", a.permute(2, 0, 1).contiguous(), x.transpose(2, 0, 1))
    same("flip, shrink", a.flip(1)[2:11, ::3], x[:, ::-1][2:11, ::3])
    same("pad", a.pad(((1, 2), (0, 3), (4, 0))), np.pad(x, ((1, 2), (0, 3), (4, 0))))
    same("concatenate", Tensor.cat(a, a[:5], dim=0), np.concatenate((x, x[:5])))
    rows = rng.integers(0, 12, 31)
    same("index", a[Tensor(rows)], x[rows])
    same("roll, repeat", a.roll(3, 1).repeat(1, 2, 1), np.tile(np.roll(x, 3, 1), (1, 2, 1)))


def products():
    for m, k, n in ((32, 48, 64), (17, 33, 9), (1, 256, 40), (64, 3, 128)):
        x, y = normal(m, k), normal(k, n)
        same(f"product {m} {k} {n}", Tensor(x) @ Tensor(y), x @ y, 1e-4)
    x, y = normal(5, 12, 16), normal(5, 16, 20)
    same("batches", Tensor(x) @ Tensor(y), x @ y, 1e-4)
    same("einsum", Tensor.einsum("bij,bjk->ki", Tensor(x), Tensor(y)), np.einsum("bij,bjk->ki", x, y), 1e-4)


def convolutions():
    pixels, weights = normal(2, 8, 20, 24), normal(12, 8, 3, 3)
    full = np.array([[sum(signal.correlate2d(image[c], filter[c], "valid") for c in range(8)) for filter in weights]
                     for image in pixels])
    same("convolution", Tensor(pixels).conv2d(Tensor(weights)), full, 1e-4)
    same("stride", Tensor(pixels).conv2d(Tensor(weights), stride=2), full[:, :, ::2, ::2], 1e-4)
    alone = normal(8, 1, 3, 3)
    each = np.array([[signal.correlate2d(image[c], alone[c, 0], "valid") for c in range(8)] for image in pixels])
    same("channel by channel", Tensor(pixels).conv2d(Tensor(alone), groups=8), each, 1e-4)
    same("maximum of windows", Tensor(pixels).max_pool2d(2), pixels.reshape(2, 8, 10, 2, 12, 2).max((3, 5)))
    same("mean of windows", Tensor(pixels).avg_pool2d(2), pixels.reshape(2, 8, 10, 2, 12, 2).mean((3, 5)), 1e-5)


def training():
    """Ten steps of gradient descent on a perceptron, against the same steps in NumPy."""
    inputs, targets = normal(64, 12), normal(64, 4)
    first, second = normal(12, 32) / 4, normal(32, 4) / 6
    on_device = Tensor(first), Tensor(second)
    optimizer = SGD(list(on_device), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        ((((Tensor(inputs) @ on_device[0]).tanh() @ on_device[1]) - Tensor(targets)) ** 2).mean().backward()
        with Context(TRAINING=1):
            optimizer.step()
    for _ in range(10):
        hidden = np.tanh(inputs @ first)
        slope = 2 * (hidden @ second - targets) / targets.size
        first_slope = inputs.T @ (slope @ second.T * (1 - hidden**2))
        second = second - 0.1 * hidden.T @ slope
        first = first - 0.1 * first_slope
    same("first layer", on_device[0], first, 1e-4)
    same("second layer", on_device[1], second, 1e-4)


for part in (elementwise, reductions, movement, products, convolutions, training):
    before = len(sources)
    part()
    print(f"{part.__name__}: {len(sources) - before} kernels", flush=True)
with_images = sum("image2d_t" in source for source in sources)
print(f"{len(sources)} kernels, {with_images} of them with images")
assert len(sources) >= 50
assert with_images >= 20 if WITH_IMAGES else with_images == 0
