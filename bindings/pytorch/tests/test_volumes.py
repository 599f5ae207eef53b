"""Three dimensions: convolutions, pooling, interpolation and padding, with gradients, against the CPU."""
import pytest
import torch
import torch.nn.functional as F

from test_neural import assert_same, randn


@pytest.fixture(autouse=True)
def nothing_runs_on_the_cpu():
    torch.opencl.reset_fallbacks()
    yield
    assert torch.opencl.fallbacks() == {}


# stride, padding, dilation, groups
CONVOLUTIONS = [(1, 0, 1, 1), ((2, 1, 3), (1, 0, 2), 1, 1), (1, (2, 1, 0), (2, 1, 1), 2), (2, 1, 1, 4)]


@pytest.mark.parametrize("stride,padding,dilation,groups", CONVOLUTIONS)
@pytest.mark.parametrize("kernel", [(3, 3, 3), (1, 2, 3), (1, 1, 1)])
def test_convolutions(kernel, stride, padding, dilation, groups, device):
    x, w, b = randn(2, 4, 6, 7, 5), randn(8, 4 // groups, *kernel), randn(8)
    assert_same(lambda x, w, b: F.conv3d(x, w, b, stride, padding, dilation, groups), device, x, w, b)


@pytest.mark.parametrize("stride,padding,dilation,groups", CONVOLUTIONS)
def test_transposed_convolutions(stride, padding, dilation, groups, device):
    x, w, b = randn(2, 4, 4, 3, 5), randn(4, 6 if groups == 1 else 4, 3, 3, 3), randn((6 if groups == 1 else 4) * groups)
    more = 0 if stride == 1 else (1, 0, 1) if stride == (2, 1, 3) else 1
    assert_same(lambda x, w, b: F.conv_transpose3d(x, w, b, stride, padding, more, groups, dilation), device, x, w, b)


def test_gradients_of_gradients(device):
    if not torch.opencl.get_device_properties(device).has_fp64:
        pytest.skip("no double precision")
    x, w = (randn(*shape).double().to(device).requires_grad_() for shape in ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2)))
    assert torch.autograd.gradcheck(lambda x, w: F.conv3d(x, w, padding=1, stride=(1, 2, 1)), (x, w))
    assert torch.autograd.gradgradcheck(lambda x, w: F.conv3d(x, w, padding=1), (x, w))
    assert torch.autograd.gradcheck(lambda x: F.interpolate(x, size=(5, 3, 6), mode="trilinear"), x)
    assert torch.autograd.gradcheck(lambda x: F.adaptive_avg_pool3d(x, (2, 3, 2)), x)


@pytest.mark.parametrize("options", [dict(kernel_size=2), dict(kernel_size=(3, 2, 1), stride=(1, 2, 2), padding=(1, 1, 0)),
                                     dict(kernel_size=3, stride=2, padding=1, ceil_mode=True)])
def test_pooling(options, device):
    x = randn(2, 3, 6, 7, 5)
    assert_same(lambda x: F.max_pool3d(x, **options), device, x)
    assert_same(lambda x: F.max_pool3d(x[0], kernel_size=2, dilation=(2, 1, 2)), device, x)
    for more in (dict(), dict(count_include_pad=False), dict(divisor_override=5)):
        assert_same(lambda x: F.avg_pool3d(x, **options, **more), device, x)
    expected = F.max_pool3d(x, **options, return_indices=True)[1]
    assert torch.equal(F.max_pool3d(x.to(device), **options, return_indices=True)[1].cpu(), expected)


@pytest.mark.parametrize("size", [1, (2, 3, 4), (6, 1, 9)])
def test_adaptive_pooling(size, device):
    x = randn(2, 3, 6, 7, 5)
    assert_same(lambda x: F.adaptive_avg_pool3d(x, size), device, x)
    assert_same(lambda x: F.adaptive_max_pool3d(x, size), device, x)
    flat = size if isinstance(size, int) else size[1:]
    assert_same(lambda x: F.adaptive_max_pool2d(x, flat), device, x[0])
    assert_same(lambda x: F.adaptive_max_pool1d(x, 3), device, x[0, 0])
    expected = F.adaptive_max_pool3d(x, size, return_indices=True)[1]
    assert torch.equal(F.adaptive_max_pool3d(x.to(device), size, return_indices=True)[1].cpu(), expected)


@pytest.mark.parametrize("options", [dict(mode="nearest"), dict(mode="nearest-exact"), dict(mode="trilinear"),
                                     dict(mode="trilinear", align_corners=True)])
@pytest.mark.parametrize("size", [dict(scale_factor=2), dict(scale_factor=(0.4, 3.5, 1)), dict(size=(7, 3, 1))])
def test_interpolation(options, size, device):
    assert_same(lambda x: F.interpolate(x, **size, **options), device, randn(2, 3, 5, 4, 6))


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("padding", [(1, 2, 3, 0, 2, 1), (0, 3, 1, 1, 0, 4)])
def test_padding(mode, padding, device):
    x = randn(2, 3, 5, 4, 6)
    assert_same(lambda x: F.pad(x, padding, mode=mode), device, x)
    assert_same(lambda x: F.pad(x, padding, mode=mode), device, x[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(dtype, device):
    x, w = (5 * randn(*shape).to(dtype) for shape in ((1, 4, 6, 5, 4), (4, 8, 3, 3, 3)))
    seed = randn(1, 4, 5, 6, 3).to(dtype)

    def interpolate(x):
        return F.interpolate(x, size=(5, 6, 3), mode="trilinear")

    def gradient(x, seed):
        x = x.clone().requires_grad_()
        return torch.autograd.grad(interpolate(x), x, seed)[0]

    for work, inputs in ((interpolate, (x,)), (gradient, (x, seed)), (lambda x, w: F.conv_transpose3d(x, w, stride=2), (x, w)),
                         (lambda x, w: F.conv_transpose2d(x[:, :, 0], w[:, :, 0], stride=2), (x, w))):
        exact = work(*(each.double() for each in inputs))
        got = work(*(each.to(device) for each in inputs)).cpu()
        # Half a unit in the last place, and what sums of floats differ from exact ones.
        torch.testing.assert_close(got.double(), exact, rtol=0.5001 * torch.finfo(dtype).eps, atol=1e-4)
