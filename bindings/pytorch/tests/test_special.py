"""Special functions, distances and losses that are rarer than those of test_neural.py: against the CPU, or against float64 where the CPU computes in
float32."""
import pytest
import torch
import torch.nn.functional as F

NAN, INF = float("nan"), float("inf")
UNARY = (torch.special.digamma, torch.special.i0, torch.special.i0e, torch.special.i1, torch.special.i1e, torch.special.entr, torch.special.erfcx,
         torch.special.log_ndtr, torch.special.ndtri, lambda x: torch.polygamma(1, x), lambda x: torch.polygamma(3, x))
EDGES = torch.tensor([0, -0.0, 1, 0.5, 1e-10, 1 - 1e-6, 2, 9.5, 10, 19.9, 20.1, 87, 700, 1e5, -1e-3, -0.5, -1.25, -7.5, -30, INF, -INF, NAN])


@pytest.mark.parametrize("number", range(len(UNARY)))
def test_unary_functions(number, device):
    function = UNARY[number]
    x = torch.cat([EDGES, torch.linspace(-8, 8, 999), torch.rand(500, generator=torch.Generator().manual_seed(1))])
    torch.opencl.reset_fallbacks()
    double, single = function(x.double().to(device)), function(x.to(device))
    assert torch.opencl.fallbacks() == {}
    expected = function(x.double())
    # The CPU's trigamma has nine digits; other functions of it are NaN of infinity.
    rtol = 1e-8 if number == 9 else 1e-11
    skipped = x.isinf() if number in (1, 3, 9, 10) else torch.zeros_like(x, dtype=torch.bool)
    # Near poles a unit in the last place of x is large in the result; CPU and GPU differ at the poles themselves.
    if number in (0, 9, 10):
        skipped = skipped | ((x < 0) & ((x - x.round()).abs() < 1e-3))
    expected = expected.masked_fill(skipped, 0)
    torch.testing.assert_close(double.cpu().masked_fill(skipped, 0), expected, rtol=rtol, atol=1e-13, equal_nan=True)
    torch.testing.assert_close(single.cpu().masked_fill(skipped, 0), expected.float(), rtol=2e-6, atol=1e-7, equal_nan=True)
    if number in (1, 3):
        assert function(torch.tensor([INF, -INF], device=device)).tolist() == [INF, INF if number == 1 else -INF]


def test_binary_functions(device):
    a = torch.tensor([0, 0.3, 1, 2.5, 10, 99, 1000, INF, NAN, -1], dtype=torch.float64)
    x = torch.tensor([0, 1e-3, 0.5, 1, 3, 9.9, 11, 98, 103, 990, 1100, INF, NAN, -2], dtype=torch.float64).unsqueeze(1)
    torch.opencl.reset_fallbacks()
    for function in (torch.special.gammainc, torch.special.gammaincc, torch.special.xlog1py):
        # NaN stays NaN; with the CPU's incomplete gamma functions it does not.
        expected = function(a, x).masked_fill(a.isnan() | x.isnan(), NAN)
        torch.testing.assert_close(function(a.to(device), x.to(device)).cpu(), expected, rtol=1e-9, atol=1e-14, equal_nan=True)
    s = torch.tensor([0.5, 1, 1.5, 2, 7, 40, 300, INF], dtype=torch.float64)
    q = torch.tensor([1e-3, 0.5, 1, 9.5, 30, 1e4, -0.5, -3.25, 0, -2, NAN], dtype=torch.float64).unsqueeze(1)
    torch.testing.assert_close(torch.special.zeta(s.to(device), q.to(device)).cpu(), torch.special.zeta(s, q), rtol=1e-12, atol=0, equal_nan=True)
    assert torch.opencl.fallbacks() == {}


def gradients(function, device, *tensors):
    leaves = [tensor.detach().to(device, copy=True).requires_grad_() for tensor in tensors]
    result = function(*leaves)
    torch.manual_seed(3)
    result.backward(torch.randn(result.shape, dtype=result.dtype).to(device))
    return [result.detach(), *(leaf.grad for leaf in leaves)]


def check(function, device, *tensors, atol=1e-5):
    torch.opencl.reset_fallbacks()
    got = gradients(function, device, *tensors)
    assert torch.opencl.fallbacks() == {}
    for a, b in zip(got, gradients(function, "cpu", *tensors), strict=True):
        torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=atol, equal_nan=True)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, INF])
def test_distances(p, device):
    torch.manual_seed(1)
    x, y = torch.randn(5, 7), torch.randn(4, 7)
    y[2] = x[3]
    y[1, :3] = x[1, :3]
    check(lambda a, b: torch.cdist(a, b, p), device, x, y)
    check(lambda a, b: torch.cdist(a.t(), b.t(), p), device, x[:4], y)
    check(lambda a, b: torch.cdist(a.view(5, 1, 7, 1)[::2], b.view(4, 7, 1), p), device, x, y)
    check(lambda a, b: torch.cdist(a, b[:0], p), device, x, y)
    check(lambda a: F.pdist(a, p), device, torch.cat([x, x[:2] + 0.5]))
    many, others = torch.randn(30, 3), torch.randn(40, 3)
    check(lambda a, b: torch.cdist(a, b, p), device, many, others)
    check(lambda a, b: torch.cdist(a, b, p, compute_mode="donot_use_mm_for_euclid_dist"), device, many, others)


@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_ctc_loss(reduction, zero_infinity, device):
    torch.manual_seed(1)
    times, classes = 50, 20
    # A target of no classes, one that is longer than its input, and classes that are repeated.
    inputs, lengths = [50, 40, 3, 20], [12, 0, 9, 5]
    padded = torch.randint(1, classes, (4, 12))
    padded[3, :5] = 7
    joined = torch.cat([row[:length] for row, length in zip(padded, lengths)])
    x = torch.randn(times, 4, classes)
    for targets in (padded, joined, padded.int(), padded.t().contiguous().t()):
        for blank in (0, classes - 1):
            check(lambda y: F.ctc_loss(y.log_softmax(2), targets.to(y.device).clamp(max=classes - 2) if blank else targets.to(y.device), inputs, lengths, blank,
                                       reduction, zero_infinity), device, x)
    check(lambda y: F.ctc_loss(y.log_softmax(2), padded.to(y.device), torch.tensor(inputs, device=y.device), torch.tensor(lengths, device=y.device),
                               reduction=reduction, zero_infinity=zero_infinity), device, x.transpose(0, 1).contiguous().transpose(0, 1))
    check(lambda y: F.ctc_loss(y.log_softmax(1), padded[0].to(y.device), torch.tensor(50), torch.tensor(12), reduction=reduction), device, x[:, 0])


def test_lengths_of_ctc_loss_are_checked(device):
    x, targets = torch.randn(5, 2, 4, device=device).log_softmax(2), torch.ones(2, 3, dtype=torch.long, device=device)
    for inputs, lengths in (([6, 5], [3, 3]), ([5, 5], [4, 3]), ([5], [3, 3])):
        with pytest.raises(RuntimeError):
            F.ctc_loss(x, targets, inputs, lengths)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_margin_losses(reduction, device):
    torch.manual_seed(1)
    x, classes, weight = torch.randn(6, 5), torch.randint(0, 5, (6,)), torch.rand(5)
    for p in (1, 2):
        for given in (None, weight):
            check(lambda y: F.multi_margin_loss(y, classes.to(y.device), p, 0.7, None if given is None else given.to(y.device), reduction=reduction), device, x)
        check(lambda y: F.multi_margin_loss(y.t(), classes[:5].to(y.device), p, reduction=reduction), device, x)
        check(lambda y: F.multi_margin_loss(y[0], classes[0].to(y.device), p, reduction=reduction), device, x)
    targets = torch.tensor([[0, 3, -1, 2, 1], [-1, 0, 1, 2, 3], [4, 3, 2, 1, 0], [1, 1, 2, -1, -1], [2, -1, 0, 0, 0], [3, 0, 4, -1, 2]])
    check(lambda y: F.multilabel_margin_loss(y, targets.to(y.device), reduction=reduction), device, x)
    check(lambda y: F.multilabel_margin_loss(y[0], targets[0].to(y.device), reduction=reduction), device, x)
    check(lambda y: F.multilabel_margin_loss(y.t(), targets[:5].to(y.device), reduction=reduction), device, torch.randn(5, 5))
    assert F.multi_margin_loss(x.to(device), torch.full((6,), 9, device=device)).isnan().item()


def test_fractional_pooling(device):
    torch.manual_seed(1)
    for pool, window, sizes, shape in ((F.fractional_max_pool2d, (2, 3), (6, 4), (2, 3, 13, 11)), (F.fractional_max_pool3d, (2, 3, 2), (5, 6, 4), (2, 3, 9, 13, 11)),
                                       (F.fractional_max_pool2d, 1, (1, 1), (2, 3, 4, 4)), (F.fractional_max_pool2d, 2, (6, 4), (3, 13, 11))):
        x, samples = torch.randn(shape), torch.rand(shape[0] if len(shape) > 3 else 1, 3, 2 if pool is F.fractional_max_pool2d else 3)
        x[..., 2, 3] = NAN
        check(lambda y: pool(y, window, output_size=sizes, _random_samples=samples.to(y.device)), device, x)
        check(lambda y: pool(y.transpose(-1, -2).contiguous().transpose(-1, -2), window, output_size=sizes, _random_samples=samples.to(y.device)), device, x)
        places = [pool(y, window, output_size=sizes, _random_samples=samples.to(y.device), return_indices=True)[1] for y in (x.to(device), x)]
        assert torch.equal(places[0].cpu(), places[1])


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [False, True])
def test_grid_sample(dims, mode, padding, aligned, device):
    if dims == 3 and mode == "bicubic":
        pytest.skip("of images alone")
    torch.manual_seed(1)
    image, grid = torch.randn(2, 3, *(5, 6, 7)[3 - dims:]), 1.5 * torch.randn(2, *(4, 3, 5)[3 - dims:], dims)
    options = dict(mode=mode, padding_mode=padding, align_corners=aligned)
    grid[0, 0], grid[1, 0] = 0.25, 40.0
    check(lambda x, g: F.grid_sample(x, g, **options), device, image, grid, atol=1e-4)
    check(lambda x, g: F.grid_sample(x.transpose(-1, -2), g.transpose(1, 2), **options), device, image, grid, atol=1e-4)
    check(lambda x, g: F.grid_sample(x[..., :1], g, **options), device, image, grid, atol=1e-4)
    # The CPU computes each step in half precision.
    half, places = image.half(), grid.half()
    got = F.grid_sample(half.to(device), places.to(device), **options)
    torch.testing.assert_close(got.cpu(), F.grid_sample(half.float(), places.float(), **options).half(), rtol=2e-3, atol=2e-3)


def test_gradients_of_windows_of_one_dimension(device):
    torch.manual_seed(1)
    x = torch.randn(4, 11, 3)
    for size, step in ((3, 1), (3, 2), (2, 4), (11, 1), (1, 1)):
        check(lambda y: y.unfold(1, size, step), device, x)
        check(lambda y: y.transpose(0, 1).unfold(0, size, step), device, x)
    check(lambda y: y[0, 0, 0].unfold(0, 1, 1), device, x)


def test_operators_of_others(device):
    torch.manual_seed(1)
    x = torch.randn(4, 3)
    check(lambda y: torch.renorm(y, 2, 0, 1.0) + torch.renorm(y, INF, 1, 0.5), device, x)
    check(lambda y: torch.cross(y, y.flip(0), dim=1), device, x)
    check(lambda y: torch.rsub(y, y[0], alpha=2), device, x)
    check(lambda y: F.rrelu(y, 0.1, 0.3, training=False), device, x)
    y = x.to(device).requires_grad_()
    out = F.rrelu(y, 0.1, 0.3, training=True)
    out.sum().backward()
    slopes = (out / y)[y < 0]
    assert ((slopes >= 0.1) & (slopes <= 0.3)).all() and torch.equal(out[y > 0], y[y > 0])
    torch.testing.assert_close(y.grad, (out / y).detach())
    numbers = torch.tensor([0, -0.0, 1, 0.75, -3, 1e-40, 3e38, INF, -INF, NAN])
    for a, b in zip(torch.frexp(numbers.to(device)), torch.frexp(numbers)):
        torch.testing.assert_close(a.cpu()[:7], b[:7], rtol=0, atol=0)
    assert torch.opencl.fallbacks() == {}


def test_angles_and_orders_of_complex_numbers(device):
    torch.manual_seed(1)
    numbers = torch.randn(4, 5, dtype=torch.complex64)
    def function(z):
        real = torch.tensor([1.0, -1, 0, -0.0, NAN, -INF], device=z.device)
        return [z.angle(), z.conj().angle(), real.angle(), real.half().angle(), torch.tensor([-2, 3], device=z.device).angle(), z.roll(2, 0),
                z.roll(1), z.flip(0, 1), z.t().flip(0), torch.fft.fftshift(z)]
    torch.opencl.reset_fallbacks()
    got = function(numbers.to(device))
    assert torch.opencl.fallbacks() == {}
    for a, b in zip(got, function(numbers), strict=True):
        torch.testing.assert_close(a.cpu(), b, equal_nan=True)
