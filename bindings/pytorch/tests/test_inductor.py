"""torch.compile: generated kernels give what eager mode gives, and models train with the same losses."""
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import models


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def to(device, value):
    return value.to(device) if isinstance(value, torch.Tensor) else value


def check(function, *inputs, device, dynamic=False, **tolerance):
    """Compares with the CPU's eager result, without operators that run on the CPU. Returns how many kernels were launched."""
    expected = function(*inputs)
    on_device = [to(device, value) for value in inputs]
    compiled = torch.compile(function, dynamic=dynamic)
    compiled(*[to(device, value.clone()) if isinstance(value, torch.Tensor) else value for value in inputs])
    torch.opencl.reset_fallbacks()
    before = torch.opencl.kernel_launches()
    got = compiled(*on_device)
    launches = torch.opencl.kernel_launches() - before
    assert torch.opencl.fallbacks() == {}
    single = isinstance(got, torch.Tensor)
    for mine, theirs in zip([got] if single else got, [expected] if single else expected):
        assert mine.dtype == theirs.dtype and mine.device == torch.device(device)
        torch.testing.assert_close(mine.cpu(), theirs, **tolerance)
    return launches


def floats(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def test_a_chain_of_pointwise_operators_is_one_kernel(device):
    assert check(lambda x, y: (x.exp() + y.tanh() * 2 - x.sigmoid()).relu(), floats(30, 70), floats(70), device=device) == 1


def test_a_softmax_is_one_kernel(device):
    assert check(lambda x: x.softmax(-1), floats(40, 67), device=device) == 1


def test_a_layer_norm_with_what_follows_is_one_kernel(device):
    assert check(lambda x, w, b: F.gelu(F.layer_norm(x, (64,), w, b)), floats(48, 64), floats(64), floats(64),
                 device=device) == 1


MATH = """abs neg sign square reciprocal sigmoid relu exp exp2 expm1 sqrt rsqrt sin cos tan atan sinh cosh tanh asinh erf erfc
floor ceil trunc round isnan isinf signbit frac sinc""".split()


def test_functions_of_one_number(device):
    x = torch.cat([floats(500) * 3, torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 2.5, -2.5])])
    check(lambda v: [getattr(torch, name)(v) for name in MATH], x, device=device, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_functions_on_intervals(device):
    x = torch.linspace(0.01, 0.99, 300)
    names = "log log2 log10 log1p asin acos atanh lgamma erfinv logit".split()
    check(lambda v: [getattr(torch, name)(v) for name in names], x, device=device, rtol=1e-5, atol=1e-5)


def test_functions_of_two_numbers(device):
    x, y = floats(400), floats(400).flip(0)
    x[:2] = float("nan")
    check(lambda a, b: (a + b, a - b, a * b, a / b, torch.maximum(a, b), torch.minimum(a, b), torch.atan2(a, b), torch.hypot(a, b),
                        torch.copysign(a, b), torch.fmod(a, b), torch.remainder(a, b), torch.floor_divide(a, b), a.abs() ** b,
                        torch.where(a > b, a, b), a.clamp(-0.5, 0.5), (a > 0) & (b > 0), (a > 0) | ~(b > 0), a != b),
          x, y, device=device, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers(device, dtype):
    x = (torch.arange(200) * 37 % 120 - (0 if dtype == torch.uint8 else 60)).to(dtype)
    y = (torch.arange(200) % 9 - (-1 if dtype == torch.uint8 else 4)).to(dtype)
    y[y == 0] = 7
    check(lambda a, b: (a + b, a * b, a - b, a // b, a % b, torch.div(a, b, rounding_mode="trunc"), a / b, ~a, a & b, a | b, a ^ b,
                        a > b, torch.maximum(a, b), a.sum(), a.float(), a.bool(), a.to(torch.uint8), a.amax(), a.argmin()),
          x, y, device=device)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floating_types(device, dtype):
    if dtype == torch.float64 and not torch.opencl.get_device_properties(device).has_fp64:
        pytest.skip("no double precision")
    limits = {} if dtype == torch.float64 else {"rtol": 2e-2, "atol": 2e-2}
    check(lambda x: (x * 2 + 1, x.exp(), x.sum(0), x.sum(1), x.softmax(-1), x.float(), x.mean(), x.amax(1)),
          floats(33, 40).to(dtype), device=device, **limits)


@pytest.mark.parametrize("shape", [(3, 5), (64, 64), (7, 300), (300, 7), (1, 5000), (5000, 1), (200, 1000)])
def test_reductions(device, shape):
    def reduce(x):
        results = [x.sum(), x.amax(), x.amin(), x.argmax(), x.mean(), (x > 2).any(), (x > -9).all(), x.var()]
        for dim in (0, 1):
            results += [x.sum(dim), x.prod(dim), x.amax(dim), x.amin(dim), x.argmax(dim), x.argmin(dim), (x > 1).any(dim),
                        x.var(dim, correction=0), x.mean(dim), x.logsumexp(dim)]
        return results

    check(reduce, floats(*shape), device=device, rtol=1e-4, atol=1e-4)


def test_variance_of_numbers_far_from_zero(device):
    check(lambda x: torch.var_mean(x, -1), floats(20, 500) + 1000, device=device, rtol=1e-4, atol=1e-4)


def test_extremes_of_equal_numbers_and_nan(device):
    x = torch.zeros(4, 100)
    x[1, 30] = x[1, 70] = 5
    x[2, 40] = float("nan")
    x[3] = float("-inf")
    check(lambda v: (v.argmax(1), v.argmin(1), v.amax(1), v.amin(1)), x, device=device, equal_nan=True)


def test_reductions_over_several_dimensions(device):
    check(lambda x: (x.sum((0, 2)), x.amax((1, 3)), x.mean((0, 1)), torch.var_mean(x, (0, 2, 3))[0], x.permute(2, 0, 3, 1).sum((1, 2))),
          floats(4, 6, 9, 5), device=device, rtol=1e-4, atol=1e-4)


def test_shapes_and_places(device):
    check(lambda x: (x.t().contiguous(), F.pad(x, (1, 2, 3, 4)), torch.cat([x, x * 2], 1), x[::2, 1::3] + 1, x.flip(0), x.roll(3, 1),
                     torch.tril(x), x.unfold(1, 4, 2).contiguous(), torch.stack([x, x + 1]), x.reshape(-1, 8).sum(1), x.repeat(2, 3)),
          floats(20, 32), device=device)


def test_indices(device):
    i = torch.tensor([3, 0, -1, 3, 7])
    j = torch.randint(0, 9, (12, 4), generator=torch.Generator().manual_seed(0))
    check(lambda x, i, j: (x[i], x[:, i[:2]], x.gather(1, j), x.index_select(0, i.abs()), F.embedding(j, x), x.take_along_dim(j, 1),
                           torch.zeros_like(x).index_put((i,), x[:5], accumulate=True),
                           torch.zeros_like(x).scatter_add(1, j, x[:, :4])), floats(12, 9), i, j, device=device)


def test_products_are_called_without_the_dispatcher(device):
    from torch._inductor.utils import run_and_get_code

    def work(x, w, b, y):
        hidden = F.gelu(F.linear(x, w, b))
        return hidden.t() @ x[:, :40], torch.bmm(y, y.transpose(1, 2)), torch.baddbmm(y[:, :, :6], y, y.transpose(1, 2), beta=0.5, alpha=2)

    inputs = floats(30, 50), floats(70, 50), floats(70), floats(4, 6, 8)
    check(work, *inputs, device=device, rtol=1e-4, atol=1e-4)
    _, codes = run_and_get_code(torch.compile(work), *[value.to(device) for value in inputs])
    assert codes[0].count(" = opencl_product(") == 4 and "extern_kernels.mm" not in codes[0] and "extern_kernels.addmm" not in codes[0]


def test_convolutions_of_many_channels_keep_their_layout(device):
    """With channels last each weight, image and gradient would be copied before and after a convolution."""
    from torch._inductor.utils import run_and_get_code

    def work(x, first, second):
        return F.conv2d(F.relu(F.conv2d(x, first, padding=1)), second, padding=1)

    inputs = floats(2, 96, 8, 8), floats(128, 96, 3, 3), floats(128, 128, 3, 3)
    check(work, *inputs, device=device, rtol=1e-3, atol=2e-2)
    _, codes = run_and_get_code(torch.compile(work), *[value.to(device) for value in inputs])
    assert codes[0].count(" = opencl_kernel(") == 1


def test_an_index_outside_of_the_tensor_is_harmless(device):
    compiled = torch.compile(lambda x, i: x[i] * 2)
    got = compiled(torch.arange(10.0, device=device), torch.tensor([1, 10 ** 12, -10 ** 12], device=device))
    assert got[0] == 2 and torch.isfinite(got).all()


def test_numbers_computed_from_indices_have_64_bits(device):
    """Indices of small tensors have 32."""
    check(lambda x: (torch.arange(4000, device=x.device) * 1000000 + x, torch.arange(-4 * 10 ** 9, 0, 10 ** 6, device=x.device) + x,
                     (torch.arange(4000, device=x.device) * 1000000).double() + x, torch.arange(4000, device=x.device, dtype=torch.int32) * 2),
          torch.arange(4000), device=device)


def test_interpolation_and_pooling(device):
    check(lambda x: (F.interpolate(x, scale_factor=2, mode="bilinear"), F.interpolate(x, size=(5, 7)), F.avg_pool2d(x, 2),
                     F.adaptive_avg_pool2d(x, 3), F.max_pool2d(x, 3, 2, 1)), floats(2, 3, 8, 8), device=device, rtol=1e-4, atol=1e-4)


def test_tensors_are_changed_in_place(device):
    def change(x, y):
        x.mul_(2).add_(y)
        y[1:3] = 7
        return x.sum()

    x, y = floats(40, 30), floats(40, 30)
    mine = [x.to(device), y.to(device)]
    expected, got = change(x, y), torch.compile(change)(*mine)
    torch.testing.assert_close(got.cpu(), expected)
    torch.testing.assert_close(mine[0].cpu(), x)
    torch.testing.assert_close(mine[1].cpu(), y)


def test_sizes_that_vary(device):
    def work(x):
        return x.softmax(-1).sum(0) * x.shape[0], (x * 2).t().contiguous(), x.var()

    compiled = torch.compile(work, dynamic=True)
    for rows, columns in ((3, 40), (70, 5), (200, 300)):
        x = floats(rows, columns)
        for got, expected in zip(compiled(x.to(device)), work(x)):
            torch.testing.assert_close(got.cpu(), expected, rtol=1e-4, atol=1e-4)


def test_random_numbers_are_distributed_as_they_should(device):
    compiled = torch.compile(lambda x: (torch.rand_like(x), torch.randn_like(x), torch.randint_like(x, 3, 9), F.dropout(x, 0.25)))
    uniform, normal, integers, dropped = (part.cpu() for part in compiled(torch.ones(200, 500, device=device)))
    assert 0 <= uniform.min() and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.01
    assert abs(normal.mean()) < 0.02 and abs(normal.std() - 1) < 0.02
    assert sorted(integers.unique().tolist()) == [3, 4, 5, 6, 7, 8]
    assert abs((dropped == 0).float().mean() - 0.25) < 0.01 and abs(dropped.mean() - 1) < 0.02


STEPS = {"perceptron": 30, "resnet18": 4, "transformer": 30}


@pytest.mark.parametrize("task", models.TASKS)
def test_losses_are_those_of_the_cpu(task, device):
    steps = STEPS[task]
    expected = models.train(task, "cpu", steps)
    torch.opencl.reset_fallbacks()
    got = models.train(task, device, steps, compiled=True)
    assert torch.opencl.fallbacks() == {}
    torch.testing.assert_close(torch.tensor(got), torch.tensor(expected), rtol=0.05, atol=0.02)
    torch.testing.assert_close(torch.tensor(got[:3]), torch.tensor(expected[:3]), rtol=1e-3, atol=1e-3)


def test_importing_torch_does_not_load_the_compiler():
    program = "import sys, torch; torch.ones(2, device='opencl'); sys.exit('torch._inductor.codegen.common' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0


def test_a_convolution_of_images_whose_size_is_not_fixed(device):
    """Its bias is added by a kernel whose indices alone need the number of pixels."""
    torch.manual_seed(5)
    weight, bias = torch.randn(4, 3, 3, 3), torch.randn(4)

    def work(x, weight, bias):
        return F.silu(F.conv2d(x, weight, bias))

    compiled = torch.compile(work, dynamic=True)
    for size in (8, 11):
        x = torch.randn(2, 3, size, size)
        got = compiled(x.to(device), weight.to(device), bias.to(device))
        torch.testing.assert_close(got.cpu(), work(x, weight, bias), rtol=1e-4, atol=1e-4)


def test_functions_without_an_expression_are_called(device):
    """They were errors of the compiler: Operations does not implement ops.i0."""
    def work(x):
        return (torch.special.i0(x) + 1, torch.digamma(x) * 2, torch.special.ndtri(x / 9), torch.polygamma(1, x), torch.special.zeta(x + 1, x), torch.special.log_ndtr(x),
                torch.special.i1e(x).sum(0), torch.igamma(x, x) + torch.special.bessel_j0(x))

    x = torch.rand(4, 5, generator=torch.Generator().manual_seed(3)) + 0.5
    got, expected = torch.compile(work)(x.to(device)), work(x)
    for mine, theirs in zip(got, expected):
        torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-4, atol=1e-5)
