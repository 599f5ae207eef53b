"""Running extremes, search in sorted sequences, unique elements, counts: on the device, with the CPU's results, also of NaN, equal elements, no
elements and tensors that are not contiguous."""
import pytest
import torch

NAN, INF = float("nan"), float("inf")


def matrix(dtype):
    """With equal elements; a row that is all NaN, one with some, and infinities, where the type has them."""
    torch.manual_seed(1)
    x = torch.randint(0, 4, (6, 70)).to(dtype)
    if dtype.is_floating_point:
        x[1] = NAN
        x[2, 5::9] = NAN
        x[3, 7], x[3, 9] = -INF, INF
        x[4] = -INF
    return x


def check(function, device, *tensors, **tolerances):
    torch.opencl.reset_fallbacks()
    got = function(*(tensor.to(device) for tensor in tensors))
    assert torch.opencl.fallbacks() == {}
    expected = function(*tensors)
    for a, b in zip(got, expected, strict=True):
        assert a.device == torch.device(device)
        torch.testing.assert_close(a.cpu(), b, equal_nan=True, **tolerances)


TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool)


def views(x):
    return [x, x.t(), x[:, ::3], x[::2].t(), x[0, 0], x[:0], x.view(2, 3, 70).transpose(0, 2)]


@pytest.mark.parametrize("dtype", TYPES)
def test_running_extremes(dtype, device):
    def function(x):
        return [result for y in views(x) for dim in range(-y.dim(), max(1, y.dim())) for of in (torch.cummax, torch.cummin) for result in of(y, dim)]
    check(function, device, matrix(dtype))


@pytest.mark.parametrize("dtype", TYPES[:4])
def test_logcumsumexp(dtype, device):
    tolerances = {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(dtype, 1e-5)
    check(lambda x: [y.logcumsumexp(-1) for y in views(x)], device, matrix(dtype), rtol=tolerances, atol=tolerances)


@pytest.mark.parametrize("dtype", TYPES[:-1])
def test_places_in_sorted_sequences(dtype, device):
    def function(sequences, x):
        flat = sequences[3].contiguous()
        results = [torch.searchsorted(sequences, x, right=right, out_int32=right) for right in (False, True)]
        results += [torch.searchsorted(sequences.t().contiguous().t(), x[:, ::2], side="right"), torch.searchsorted(flat, x.t()),
                    torch.bucketize(x, flat, right=True), torch.searchsorted(flat, x[0, 0]), torch.searchsorted(flat, 2), torch.bucketize(2, flat),
                    torch.searchsorted(flat, x[:, :0]), torch.searchsorted(flat[:0], x), torch.bucketize(x.double(), flat)]
        unsorted = sequences.flip(1)
        return results + [torch.searchsorted(unsorted, x, sorter=unsorted.sort(stable=True, dim=1)[1])]
    x = matrix(dtype)
    check(function, device, x.sort(1)[0], x.flip(0))


def test_a_sorter_outside_of_the_sequence_is_refused(device):
    x = torch.arange(4.0, device=device)
    with pytest.raises(RuntimeError, match="sorter index out of range"):
        torch.searchsorted(x, x, sorter=torch.tensor([0, 1, 2, 4], device=device))
    with pytest.raises(RuntimeError, match="same device"):
        torch.searchsorted(x, x.cpu())


@pytest.mark.parametrize("dtype", TYPES)
def test_unique_elements(dtype, device):
    def function(x):
        results = []
        for y in (x, x.t(), x[:, ::3], x[0, 0], x[:1], x[:0]):
            values, inverse, counts = torch.unique(y, return_inverse=True, return_counts=True)
            # Each NaN is an element of its own, in any order.
            results += [values, values[inverse] if y.numel() else inverse, inverse.masked_fill(y != y, 0), counts]
            results += torch.unique_consecutive(y, return_inverse=True, return_counts=True)
        few = x[:, :3].contiguous()
        for dim in (0, 1, -1):
            results += torch.unique_consecutive(few, return_inverse=True, return_counts=True, dim=dim)
            results += torch.unique(few.nan_to_num(), return_inverse=True, return_counts=True, dim=dim)
        results += torch.unique(x.nan_to_num().view(6, 35, 2), return_inverse=True, return_counts=True, dim=1)
        return [*results, x.unique(), torch.unique(x, return_counts=True)[1]]
    x = matrix(dtype)
    x[5] = x[0]
    torch.opencl.reset_fallbacks()
    got, expected = function(x.to(device)), function(x)
    # Of no elements there is nothing to gain.
    assert set(torch.opencl.fallbacks().values()) <= {1}
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a.cpu(), b, equal_nan=True)


@pytest.mark.parametrize("dtype", TYPES)
def test_mode_and_nanmedian(dtype, device):
    def function(x):
        results = []
        for y in (x, x.t(), x[:, ::3], x[0, 0]):
            if dtype is not torch.bool:
                results += [y.nanmedian(), y.nanmedian(0)[0], y.nanmedian(-1, keepdim=True)[0]]
            # The CPU does not sort NaN for mode.
            y = y.nan_to_num(9) if dtype.is_floating_point else y
            values, places = y.mode(0)
            results += [values, y.mode(-1, keepdim=True)[0], (y.gather(0, places.unsqueeze(0))[0] if y.dim() else y)]
        return results
    check(function, device, matrix(dtype))


def test_histc(device):
    torch.manual_seed(2)
    x = torch.randn(50, 40)
    x[0, :3] = torch.tensor([NAN, INF, -INF])
    # Edges and the greatest element, which belongs to the last bin.
    x[1, :9] = torch.linspace(-2, 2, 9)
    for dtype in (torch.float32, torch.float64):
        check(lambda y: [y.histc(8, -2, 2), y.t().histc(100, -1, 3), y[2:, ::2].histc(7), y[2, :1].histc(3), y[:0].histc(4), y[:0].histc(4, 1, 2),
                         torch.histc(y, 5, -1, 1, out=torch.empty(0, dtype=y.dtype, device=y.device))], device, x.to(dtype))
    integers = torch.randint(-5, 6, (1000,))
    got = integers.to(device).histc(11, -5, 5).cpu()
    assert got.dtype == torch.int64 and torch.equal(got, integers.double().histc(11, -5, 5).long())
    with pytest.raises(RuntimeError, match="finite"):
        x.to(device).histc(3)
    with pytest.raises(RuntimeError, match="bins must be"):
        x.to(device).histc(0)


def test_triangles_and_ranges(device):
    def function(x):
        shapes = [(rows, columns, offset) for rows in (0, 1, 3, 7) for columns in (0, 1, 4, 9) for offset in range(-9, 11)]
        results = [of(*shape, device=x.device) for shape in shapes for of in (torch.tril_indices, torch.triu_indices)]
        results += [torch.tril_indices(4, 5, dtype=torch.int32, device=x.device)]
        for dtype in (torch.float32, torch.float64, torch.int64, torch.int32):
            results += [torch.logspace(start, end, steps, base, dtype=dtype, device=x.device) for start, end in ((0, 3), (2.7, 0.3), (-1.5, 3.5))
                        for steps in (0, 1, 2, 5) for base in (2, 10)]
            results += [torch.linspace(start, end, 5, dtype=dtype, device=x.device) for start, end in ((2.7, 3.9), (-1.5, 3.5), (3, 1))]
        return results
    check(function, device, torch.zeros(1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8])
def test_gcd_and_lcm(dtype, device):
    x = torch.arange(0 if dtype is torch.uint8 else -12, 13).to(dtype)
    check(lambda y: [torch.gcd(y, y.unsqueeze(1)), torch.lcm(y, y.unsqueeze(1)), torch.gcd(y[::2], y[1:2])], device, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.bool])
def test_running_sums_of_long_lines(dtype, device):
    """GPUs divide them into parts."""
    torch.manual_seed(3)
    x = torch.randint(-1 if dtype.is_floating_point else 0, 2, (2, 10007)).to(dtype)
    tolerances = dict(rtol=1e-3, atol=1e-3) if dtype is torch.float16 else {}
    check(lambda y: [y.cumsum(1), y.t().contiguous().cumsum(0), y.t().cumsum(0), y[0, ::2].cumsum(0), y.cumsum(1, dtype=torch.float32)],
          device, x, **tolerances)
    if dtype.is_floating_point:
        y = x[0].clone()
        y[5000], y[9000] = INF, -INF
        check(lambda z: [z.cumsum(0)], device, y)
    check(lambda y: [y.flatten()[y.flatten() > 0], torch.nonzero(y)], device, x)
