"""Operators that consist of others: they run on the device, with the CPU's results."""
import pytest
import torch
import torch.nn.functional as F

FLOATS = (torch.float32, torch.float16, torch.float64)


def numbers(dtype, *shape):
    torch.manual_seed(len(shape))
    return torch.randint(1 if dtype is torch.bool else 0, 6, shape).to(dtype) if not dtype.is_floating_point else torch.randn(shape).to(dtype)


def places(x, *values):
    return torch.tensor(values, device=x.device)


def reductions(x):
    rows = torch.tensor([[0, 1, 1, 2, 0, 3], [3, 3, 3, 0, 1, 4]], device=x.device)
    results = []
    for include in (True, False):
        results += [x.scatter_reduce(0, rows, x[:2], how, include_self=include) for how in ("sum", "prod", "amax", "amin", "mean")]
        results += [x.index_reduce(0, places(x, 0, 2, 2), x[1:4], how, include_self=include) for how in ("prod", "amax", "amin", "mean")]
    return results + [x.scatter(0, rows, x[:2], reduce="add"), x.scatter(0, rows, 2, reduce="multiply")]


def with_nan(x):
    return x.masked_fill(x > 1, float("nan")) if x.is_floating_point() else x


ALL = {  # on a matrix of 5 x 6
    "nansum": lambda x: [with_nan(x).nansum(), with_nan(x).nansum(1, keepdim=True)],
    "count_nonzero": lambda x: [torch.count_nonzero(x), torch.count_nonzero(x, 0), torch.count_nonzero(x, (0, 1))],
    "aminmax": lambda x: [*torch.aminmax(x), *torch.aminmax(x, dim=1), *torch.aminmax(with_nan(x), dim=0, keepdim=True)],
    "trace": lambda x: [x.trace()] if x.dtype is not torch.float16 else [],  # which the CPU does not have
    "kthvalue": lambda x: [x.kthvalue(2, 1)[0], x.kthvalue(5, 0, keepdim=True)[0], x.gather(1, x.kthvalue(2, 1, keepdim=True)[1])],
    "median": lambda x: [x.median(), with_nan(x).median(), x.median(1)[0], with_nan(x).median(0, keepdim=True)[0],
                         x.gather(1, x.median(1, keepdim=True)[1])],
    "index_fill": lambda x: [x.index_fill(0, places(x, 1, -1), 1), x.t().index_fill(1, places(x, 2), x[0, 0])],
    "take": lambda x: [x.take(places(x, 3, -1, 0)), x.t().take(places(x, 7).view(1, 1))],
    "put": lambda x: [x.put(places(x, 3, 0), x[0, :2]), x.t().put(places(x, 3, 3), x[0, :2], accumulate=True)],
    "masked_scatter": lambda x: [x.masked_scatter(x > 0, x.flatten()), x.t().masked_scatter((x > 1).t(), x)],
    "scatter_reduce": reductions,
    "heaviside": lambda x: [torch.heaviside(x, x[0])],
}
OF_FLOATS = {
    "std_mean": lambda x: [*torch.std_mean(x, 1), *torch.std_mean(x)],
    "hardshrink": lambda x: [F.hardshrink(x, 0.3)], "softshrink": lambda x: [F.softshrink(with_nan(x), 0.3)],
    "logit": lambda x: [x.logit(), x.logit(0.2), x.clone().logit_(0.1)],
    "logaddexp2": lambda x: [torch.logaddexp2(x, x[0])],
    "unfold": lambda x: [F.unfold(x.view(1, 1, 5, 6), (2, 3), dilation=(1, 2), padding=(1, 0), stride=(2, 1)), F.unfold(x.view(1, 5, 6), 2)],
    "fold": lambda x: [F.fold(F.unfold(x.view(1, 1, 5, 6), (2, 3), dilation=(1, 2), padding=(1, 0), stride=(2, 1)), (5, 6), (2, 3),
                              dilation=(1, 2), padding=(1, 0), stride=(2, 1))],
    "max_unpool": lambda x: [F.max_unpool2d(*F.max_pool2d(x[:4].view(1, 1, 4, 6), 2, return_indices=True), 2),
                             F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2),
                             F.max_unpool3d(*F.max_pool3d(x[:4].view(1, 2, 2, 6), 2, return_indices=True), 2)],
}
OF_INTEGERS = {
    "bincount": lambda x: [x[0].bincount(), x[0].bincount(minlength=9), x[0].bincount(x[1].float()), x[0].bincount(x[1].double())],
    "shifts": lambda x: [torch.bitwise_left_shift(x, x[0]), torch.bitwise_right_shift(x, 1), torch.bitwise_left_shift(x, 70)],
}
CASES = ([(name, dtype) for name in ALL for dtype in (*FLOATS, torch.int64, torch.uint8)] + [(name, dtype) for name in OF_FLOATS for dtype in FLOATS]
         + [(name, dtype) for name in OF_INTEGERS for dtype in (torch.int64, torch.int32, torch.uint8)])


@pytest.mark.parametrize("name, dtype", CASES)
def test_results(name, dtype, device):
    function = {**ALL, **OF_FLOATS, **OF_INTEGERS}[name]
    x = numbers(dtype, 5, 6)
    torch.opencl.reset_fallbacks()
    got = function(x.to(device))
    assert torch.opencl.fallbacks() == {}
    for a, b in zip(got, function(x), strict=True):
        tolerances = dict(rtol=2e-3, atol=2e-3) if dtype is torch.float16 else {}
        torch.testing.assert_close(a.cpu(), b, equal_nan=True, **tolerances)


@pytest.mark.parametrize("name", ["hardshrink", "softshrink", "logit", "std_mean", "unfold", "fold", "max_unpool", "index_fill", "masked_scatter"])
def test_gradients(name, device):
    function = {**ALL, **OF_FLOATS}[name]
    x = torch.rand(5, 6) * 0.5 + 0.25 if name == "logit" else torch.randn(5, 6)

    def gradient(where):
        leaf = x.to(where).requires_grad_()
        sum(each.square().sum() for each in function(leaf)).backward()
        return leaf.grad.cpu()

    torch.testing.assert_close(gradient(device), gradient("cpu"))


def test_random_numbers(device):
    torch.manual_seed(4)
    torch.opencl.reset_fallbacks()
    n, weights = 20000, torch.tensor([0.0, 1, 2, 0, 5, 0])
    drawn = torch.multinomial(weights.to(device), n, replacement=True)
    assert drawn.dtype == torch.int64 and torch.allclose(drawn.bincount(minlength=6).cpu() / n, weights / 8, atol=0.02)
    rows = torch.multinomial(torch.tensor([[1.0, 0], [0, 3]], device=device), 50, replacement=True)
    assert rows.tolist() == [[0] * 50, [1] * 50]
    mean, std = torch.full((n,), 3.0, device=device), torch.full((n,), 2.0, device=device)
    for x in (torch.normal(mean, std), torch.normal(mean, 2.0), torch.normal(3.0, std)):
        assert abs(x.mean().item() - 3) < 0.1 and abs(x.std().item() - 2) < 0.1
    x = torch.empty(n, device=device)
    assert abs(x.log_normal_(0.5, 0.25).log().mean().item() - 0.5) < 0.02
    assert abs(x.cauchy_(1.0, 2.0).median().item() - 1) < 0.2 and x.isfinite().all()
    assert abs(x.geometric_(0.25).mean().item() - 4) < 0.2 and x.min().item() == 1
    assert torch.opencl.fallbacks() == {}
    with pytest.raises(RuntimeError, match="std >= 0"):
        torch.normal(mean, -std)
    with pytest.raises(RuntimeError, match="sigma"):
        x.cauchy_(0, -1)
