"""torch_opencl._calls: what the code that Inductor writes calls."""
import sys

import pytest
import torch

SOURCE = """kernel void generated(global float* x, global float* y, const long n, const long step) {
  long i = get_global_id(0) * step;
  if (i < n) y[i] = x[i] * 2;
}"""


@pytest.fixture
def calls():
    from torch_opencl import _calls

    return _calls


def test_a_kernel_of_tensors_and_integers(calls, device):
    kernel = calls.opencl_kernel(SOURCE, addresses=2, values=2, group_size=0, sizes=(6,))
    x, y = torch.arange(12.0, device=device), torch.zeros(12, device=device)
    before = sys.getrefcount(x)
    assert kernel(x, y, 12, 2) is None
    assert y.tolist() == [4.0 * (i // 2) if i % 2 == 0 else 0.0 for i in range(12)]
    kernel(x[6:], y, 6, 1)
    assert y[:6].tolist() == [12.0, 14.0, 16.0, 18.0, 20.0, 22.0]
    assert sys.getrefcount(x) == before


def test_sizes_given_by_the_call(calls, device):
    kernel = calls.opencl_kernel(SOURCE, addresses=2, values=2, group_size=4, sizes=None)
    x, y = torch.ones(12, device=device), torch.zeros(12, device=device)
    kernel(x, y, 12, 1, (8,))
    assert y.tolist() == [2.0] * 8 + [0.0] * 4
    kernel(x, y, 12, 1, (0,))  # launches nothing
    for sizes, error in (((1, 1, 1, 1), ValueError), ([8], TypeError), ((8.5,), TypeError)):
        with pytest.raises(error):
            kernel(x, y, 12, 1, sizes)


SCALED = """kernel void generated(global float* x, const float factor, const uchar is_negative, const long step) {
  long i = get_global_id(0) * step;
  x[i] = x[i] * (is_negative ? -factor : factor);
}"""


def test_numbers_in_host_memory(calls, device):
    """They are copied when the kernel is launched, so that they can be changed afterwards."""
    kernel = calls.opencl_kernel(SCALED, addresses=1, values=1, group_size=0, sizes=(3,), scalars=2)
    x = torch.ones(6, device=device)
    factor = torch.tensor(1.0)
    for _ in range(5):
        factor += 1
        kernel(x, factor, factor[None] > 3, 2)
    assert x.tolist() == [-720.0, 1.0] * 3
    kernel(x, torch.arange(9.0).view(3, 3)[1, 2], torch.tensor(False), 1)
    assert x[:3].tolist() == [-3600.0, 5.0, -3600.0]


def test_tensors_that_are_elsewhere(calls, device):
    kernel = calls.opencl_kernel(SOURCE, addresses=2, values=2, group_size=0, sizes=(1,))
    x = torch.zeros(2, device=device)
    for arguments in ((x, torch.ones(2)), (torch.ones(2), x), (torch.tensor(1.0), x), (x, torch.tensor(1.0)), (torch.ones(2), torch.ones(2))):
        with pytest.raises(RuntimeError, match="same device"):
            kernel(*arguments, 1, 1)
    scaled = calls.opencl_kernel(SCALED, addresses=1, values=1, group_size=0, sizes=(1,), scalars=2)
    one, no = torch.tensor(1.0), torch.tensor(False)
    for arguments in ((x[0], no), (one, no.to(device)), (torch.ones(2), no), (torch.ones(0), no), (one.double(), no)):
        with pytest.raises(RuntimeError):
            scaled(x, *arguments, 1)
    for arguments in ((x, one, no), (x, one, None, 1), (x, 1.0, no, 1)):
        with pytest.raises(TypeError):
            scaled(*arguments)
    scaled(x, one, no, 1)
    assert x.tolist() == [0.0, 0.0]


def test_tensors_of_another_device(calls, two_devices):
    kernel = calls.opencl_kernel(SOURCE, addresses=2, values=2, group_size=0, sizes=(1,))
    x, y = (torch.ones(2, device=device) for device in two_devices)
    with pytest.raises(RuntimeError, match="same device"):
        kernel(x, y, 1, 1)


def test_wrong_arguments(calls, device):
    kernel = calls.opencl_kernel(SOURCE, addresses=2, values=2, group_size=0, sizes=(1,))
    x = torch.ones(2, device=device)
    for arguments in ((), (x, x, 1), (x, x, 1, 1, (1,)), (x, None, 1, 1), (x, x, 1.5, 1), (x, x, 1, x), (x, x, 1 << 70, 1)):
        with pytest.raises((TypeError, OverflowError)):
            kernel(*arguments)
    with pytest.raises(TypeError):
        kernel(x, x, 1, step=1)
    for arguments in ((), (SOURCE, "2", 2, 0, (1,)), (SOURCE, 2, 2, 0, 5), (SOURCE, 2, 2, 0, None, "1")):
        with pytest.raises(TypeError):
            calls.opencl_kernel(*arguments)
    for arguments in ((-1, 2, 0), (2, -1, 0), (2, 2, -1)):
        with pytest.raises(ValueError):
            calls.opencl_kernel(SOURCE, *arguments, (1,))
    with pytest.raises(TypeError):
        type(kernel)()


def test_a_source_that_is_no_kernel(calls, device):
    kernel = calls.opencl_kernel("kernel void generated(global float* x) { x[0] = nothing; }", 1, 0, 0, (1,))
    with pytest.raises(RuntimeError, match="nothing"):
        kernel(torch.ones(1, device=device))


def test_tensors_of_a_device(calls, device):
    index = torch.device(device).index
    x = calls.empty_strided_opencl((3, 4), (1, 3), torch.float16, index)
    assert (x.device, x.dtype, x.shape, x.stride()) == (torch.device(device), torch.float16, (3, 4), (1, 3))
    assert calls.empty_strided_opencl((), (), torch.bool, index).numel() == 1
    assert calls.empty_strided_opencl((0, 5), (5, 1), torch.int64, index).numel() == 0
    with torch.opencl.device(device):
        assert calls.empty_strided_opencl((1,), (1,), torch.bool, -1).device == torch.device(device)
    with pytest.raises(torch.OutOfMemoryError):
        calls.empty_strided_opencl((1 << 50,), (1,), torch.float32, index)
    for arguments in (((1,), (1,), torch.float32), ((1,), (1,), "float", 0), ([1], (1,), torch.float32, 0), ((1,), ("a",), torch.float32, 0)):
        with pytest.raises(TypeError):
            calls.empty_strided_opencl(*arguments)
    for sizes, place in (((-1,), index), ((1,), -2), ((1,), 100), ((1,), 1 << 40)):
        with pytest.raises((RuntimeError, ValueError)):
            calls.empty_strided_opencl(sizes, (1,), torch.float32, place)


def test_kernels_run_on_the_device_of_their_tensors(calls, two_devices):
    kernel = calls.opencl_kernel(SOURCE, addresses=2, values=2, group_size=0, sizes=(6,))
    for device in two_devices:
        x, y = torch.arange(6.0, device=device), torch.zeros(6, device=device)
        with torch.opencl.device(two_devices[0]):
            kernel(x, y, 6, 1)
        assert y.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def numbers(*sizes):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))


def whole(x):
    return tuple(x.shape), tuple(x.stride()), 0


def test_a_product_of_parts_of_tensors(calls, device):
    """a is transposed and begins after other elements, b is every second column, and out has rows in between."""
    a, b, out = numbers(40, 30), numbers(20, 14), torch.full((16, 9), 7.0)
    product = calls.opencl_product(((8, 7), (18, 2), 1), ((8, 20), (1, 30), 3 + 30 * 5), ((20, 7), (14, 2), 1), alpha=0.5)
    on_device = [x.to(device) for x in (out, a, b)]
    assert product(*on_device) is None
    out.as_strided((8, 7), (18, 2), 1).copy_(0.5 * a.as_strided((8, 20), (1, 30), 3 + 30 * 5) @ b[:, 1::2])
    torch.testing.assert_close(on_device[0].cpu(), out)
    on_device = [torch.zeros(10 + x.numel(), device=device)[10:].copy_(x.flatten().to(device)) for x in (torch.zeros(16, 9), a, b)]
    product(*on_device)  # tensors of the same memory with an offset of their own
    torch.testing.assert_close(on_device[0].cpu().view(16, 9)[0::2, 1::2][:, :4], out[0::2, 1::2][:, :4])


@pytest.mark.parametrize("sizes", [(), (9,), (5, 1), (5, 9)])
def test_a_product_with_something_added(sizes, calls, device):
    a, b, c = numbers(5, 70), numbers(70, 9), numbers(*sizes)
    out = torch.empty(5, 9, device=device)
    calls.opencl_product(whole(out), whole(a), whole(b), whole(c), alpha=2, beta=-3)(out, a.to(device), b.to(device), c.to(device))
    torch.testing.assert_close(out.cpu(), 2 * a @ b - 3 * c, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_products_of_a_batch(dtype, calls, device):
    a, b = numbers(3, 5, 70).to(dtype), numbers(3, 9, 70).to(dtype)
    out = torch.empty(3, 5, 9, device=device, dtype=dtype)
    calls.opencl_product(whole(out), whole(a), ((3, 70, 9), (630, 1, 70), 0))(out, a.to(device), b.to(device))
    limits = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 1e-1}
    torch.testing.assert_close(out.cpu(), a @ b.transpose(1, 2), **limits)


def test_products_that_do_not_fit(calls, device):
    row, square = ((1, 4), (4, 1), 0), ((4, 4), (4, 1), 0)
    for places in ((square, row, square), (row, square, square), (row, row, row), (((4,), (1,), 0),) * 3,
                   (((1, 4), (4,), 0), row, square), (((1, 4), (4, 1), -1), row, square), (row, row, square, ((3,), (1,), 0)),
                   (row, row, square, square)):
        with pytest.raises(ValueError):
            calls.opencl_product(*places)
    for places in ((row, row), (row, row, 5), (row, row, ((4, 4), (4, 1))), (row, row, ([4, 4], (4, 1), 0)), (row, row, ((4, 4.5), (4, 1), 0))):
        with pytest.raises(TypeError):
            calls.opencl_product(*places)
    product = calls.opencl_product(row, row, square)
    x, y = torch.ones(1, 4, device=device), torch.ones(4, 4, device=device)
    out = torch.empty(1, 4, device=device)
    product(out, x, y)
    assert out.tolist() == [[4.0] * 4]
    for arguments in ((), (out, x), (out, x, y, x), (out, x, None), (out, x.half(), y)):
        with pytest.raises(TypeError):
            product(*arguments)
    for arguments in ((out, x, x), (torch.ones(1, 4), x, y), (torch.empty(3, device=device), x, y)):
        with pytest.raises(ValueError):
            product(*arguments)
    with pytest.raises(RuntimeError, match="same device"):
        product(out, torch.ones(1, 4), y)
    with pytest.raises(TypeError):
        type(product)()
