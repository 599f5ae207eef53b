"""Long sums in float32 are as accurate as the CPU backend's: errors against float64 stay below bounds that a plain loop over all elements exceeds."""
import pytest
import torch
import torch.nn.functional as F

from programs import integers, randn


def results(program, tensors, where, dtype):
    moved = [tensor.to(where, dtype) if tensor.is_floating_point() else tensor.to(where) for tensor in tensors]
    return [value.detach().cpu().double() for value in program(*moved)]


def weighted_gradients(function, *inputs):
    """The output and the gradients of its sum with weights that are not alike, so that sums over many elements do not vanish."""
    leaves = [tensor.detach().requires_grad_() for tensor in inputs if tensor.is_floating_point()]
    output = function(*leaves, *[tensor for tensor in inputs if not tensor.is_floating_point()])
    weights = torch.linspace(-1, 1.3, output.numel(), dtype=torch.float64).view(output.shape).float().to(output)
    return [output, *torch.autograd.grad(output, leaves, weights)]


# A program, its tensors, and the greatest relative error of each of its results.
PROGRAMS = {
    "a deep product": (lambda a, b: [a @ b], [randn(64, 20000), randn(20000, 64, seed=1)], [1e-6]),
    "a deep product of transposed factors": (lambda a, b: [a.t() @ b.t()], [randn(20000, 64), randn(64, 20000, seed=1)], [1e-6]),
    "a deep product of few rows": (lambda a, b: [a @ b], [randn(4, 20000), randn(20000, 70, seed=1)], [1e-6]),
    "a layer of few rows": (lambda a, b: [F.linear(a, b)], [randn(3, 20000), randn(70, 20000, seed=1)], [1e-6]),
    "a product of a matrix and a vector": (lambda a, b: [a @ b], [randn(64, 20000), randn(20000, seed=1)], [1e-6]),
    "a convolution of many channels": (lambda x, w: [F.conv2d(x, w, padding=1)], [randn(2, 512, 5, 5), randn(32, 512, 3, 3, seed=1)], [5e-7]),
    "a convolution of one place": (lambda x, w: weighted_gradients(F.conv2d, x, w), [randn(8, 24, 48, 48), randn(16, 24, 1, 1, seed=1)],
                                   [5e-7, 5e-7, 1e-6]),
    "attention to many keys": (lambda q, k, v: [F.scaled_dot_product_attention(q, k, v)],
                               [randn(1, 2, 100, 32), randn(1, 2, 4000, 32, seed=1), randn(1, 2, 4000, 32, seed=2)], [8e-7]),
    "a running sum": (lambda x: [x.cumsum(0)], [randn(200_000) + 1], [2e-7]),
    "a running product": (lambda x: [x.cumprod(0)], [1 + randn(100_000) * 1e-3], [2e-7]),
    "sums of columns": (lambda x: [x.sum(0)], [randn(40_000, 256)], [6e-7]),
    "batch norm of images": (lambda x, w, b: weighted_gradients(lambda *t: F.batch_norm(t[0], None, None, *t[1:], True), x, w, b),
                             [randn(16, 4, 112, 112) * 3 + 2, randn(4, seed=1), randn(4, seed=2)], [2e-7, 3e-7, 5e-6, 3e-7]),
    "batch norm of samples": (lambda x, w, b: weighted_gradients(lambda *t: F.batch_norm(t[0], None, None, *t[1:], True), x, w, b),
                              [randn(50_000, 16) * 3 + 2, randn(16, seed=1), randn(16, seed=2)], [8e-7, 8e-7, 4e-5, 5e-7]),
    "layer norm": (lambda x, w, b: weighted_gradients(lambda *t: F.layer_norm(t[0], (64,), *t[1:]), x, w, b),
                   [randn(40_000, 64) * 2 + 1, randn(64, seed=1), randn(64, seed=2)], [2e-7, 2e-7, 1.5e-6, 1e-6]),
    "a loss of many samples": (lambda x, to: [F.cross_entropy(x, to)], [randn(400_000, 2), integers(0, 2, 400_000, seed=1)], [1.5e-7]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_sums_of_many_elements_are_accurate(name, device):
    program, tensors, bounds = PROGRAMS[name]
    expected = results(program, tensors, "cpu", torch.float64)
    errors = [((got - exact).norm() / exact.norm()).item() for got, exact in zip(results(program, tensors, device, torch.float32), expected)]
    assert all(error <= bound for error, bound in zip(errors, bounds, strict=True)), errors


# What Inductor generates; its own product kernels are the package's operators.
COMPILED = {
    "means of rows": (lambda x: [x.mean(1)], [randn(16, 200_000) + 1], [1.5e-7]),
    "a variance": (lambda x: [x.var()], [randn(3_000_000) + 10], [1.5e-7]),
    "sums of doubled columns": (lambda x: [(x * 2).sum(0)], [randn(40_000, 256)], [6e-7]),
    "batch norm of images": (*PROGRAMS["batch norm of images"][:2], [2e-7, 3e-7, 1e-5, 3e-7]),
}


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_sums_of_many_elements_are_accurate(name, is_dynamic, device):
    program, tensors, bounds = COMPILED[name]
    torch._dynamo.reset()
    expected = results(program, tensors, "cpu", torch.float64)
    got = results(torch.compile(program, dynamic=is_dynamic), tensors, device, torch.float32)
    errors = [((value - exact).norm() / exact.norm()).item() for value, exact in zip(got, expected, strict=True)]
    assert all(error <= bound for error, bound in zip(errors, bounds, strict=True)), errors
