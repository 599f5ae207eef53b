"""Convolutions that are computed without the matrix of all places under the kernel: sizes that fill tiles, bands and vectors, or do not."""
import pytest
import torch
import torch.nn.functional as F


def results(where, dtype, image, weight, bias, options):
    leaves = [tensor.to(dtype).to(where).detach().requires_grad_() for tensor in (image, weight, bias)]
    out = F.conv2d(*leaves, **options)
    seed = torch.randn(out.shape, generator=torch.Generator().manual_seed(2)).to(where, dtype)
    return [value.cpu().double() for value in (out.detach(), *torch.autograd.grad(out, leaves, seed))]


@pytest.mark.parametrize("dtype,tolerance", [(torch.float32, 5e-6), (torch.float16, 3e-3), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("image,weight,options", [
    ((3, 16, 8, 8), (16, 16, 3, 3), dict(padding=1)),
    ((2, 5, 11, 13), (7, 5, 3, 3), dict(padding=1)),
    ((2, 4, 7, 65), (33, 4, 3, 3), {}),
    ((2, 3, 32, 32), (12, 3, 7, 7), dict(stride=2, padding=3)),
    ((2, 2, 60, 60), (3, 2, 3, 3), dict(padding=1)),
    ((2, 3, 5, 520), (4, 3, 3, 3), dict(padding=1)),
    ((2, 3, 300, 5), (1, 3, 3, 3), dict(padding=1)),
    ((2, 8, 16, 16), (8, 8, 3, 3), dict(padding=2, dilation=2)),
    ((2, 8, 25, 25), (8, 8, 3, 3), dict(stride=3, padding=2, dilation=2)),
    ((2, 6, 20, 24), (9, 2, 3, 5), dict(stride=(1, 2), padding=(0, 2), groups=3)),
    ((2, 4, 12, 12), (4, 1, 3, 3), dict(padding=1, groups=4)),
    ((2, 6, 13, 12), (6, 1, 5, 5), dict(stride=2, padding=2, groups=6)),
    ((2, 4, 14, 14), (4, 1, 7, 7), dict(padding=3, groups=4)),
    ((2, 4, 3, 3), (8, 1, 3, 3), dict(stride=2, padding=1, groups=4)),
    ((2, 9, 9, 9), (6, 3, 3, 3), dict(stride=3, padding=1, dilation=2, groups=3)),
    ((2, 3, 9, 9), (20, 3, 4, 4), dict(padding=3)),
    ((2, 2, 40, 40), (5, 2, 29, 29), {}),
])
def test_convolutions_without_unfolding(image, weight, options, dtype, tolerance, device):
    torch.manual_seed(0)
    tensors = (torch.randn(image), torch.randn(weight) / weight[-1], torch.randn(weight[0]))
    rounded = [tensor.to(dtype) for tensor in tensors]
    # Gradients of half precision are exact on the CPU only in a type of more precision; what is random is rounded first.
    seed_type = dtype if dtype == torch.float32 else torch.float64
    expected = results("cpu", seed_type, *rounded, options)
    for a, b in zip(results(device, dtype, *rounded, options), expected):
        assert (a - b).abs().max() <= tolerance * b.abs().max()


def test_images_that_are_apart_and_weights_that_are_views(device):
    torch.manual_seed(0)
    image, weight = torch.randn(4, 9, 16, 16), torch.randn(8, 4, 3, 3)
    expected = F.conv2d(image[::2, 1:5], weight.transpose(2, 3), padding=1)
    torch.testing.assert_close(F.conv2d(image.to(device)[::2, 1:5], weight.to(device).transpose(2, 3), padding=1).cpu(), expected, rtol=1e-4, atol=1e-4)


def test_a_convolution_takes_little_memory(device):
    """Unfolded, the image would take nine times its size; here it is copied once."""
    if torch.opencl.get_device_properties(device).is_gpu:
        pytest.skip("GPUs unfold images")
    image, weight = torch.randn(4, 16, 64, 64, device=device), torch.randn(16, 16, 3, 3, device=device)
    out = F.conv2d(image, weight, padding=1)
    torch.opencl.synchronize(device)
    torch.opencl.reset_peak_memory_stats(device)
    before = torch.opencl.memory_allocated(device)
    torch.ops.aten.convolution(image, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    torch.ops.aten.convolution_backward(out, image, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False])
    assert torch.opencl.max_memory_allocated(device) - before < 4 * image.nbytes


def launches_of(convolution, image, weight, **options):
    before = torch.opencl.kernel_launches()
    out = convolution(image, weight, **options)
    torch.autograd.grad(out, (image, weight), out.detach())
    return torch.opencl.kernel_launches() - before


@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_convolutions_take_few_launches(stride, device):
    """However many channels there are: forward and backward copy an image with its border, and read that; or they unfold all groups at once."""
    image, weight = torch.randn(2, 40, 16, 16, device=device, requires_grad=True), torch.randn(40, 1, 3, 3, device=device, requires_grad=True)
    assert launches_of(F.conv2d, image, weight, stride=stride, padding=1, groups=40) <= 12


@pytest.mark.parametrize("outputs", [1, 3])
def test_groups_of_unfolded_images_take_few_launches(outputs, device):
    """Volumes and float64 are unfolded on processors too."""
    if not torch.opencl.get_device_properties(device).has_fp64:
        pytest.skip("no double precision")
    torch.manual_seed(0)
    for convolution, shape, options in ((F.conv3d, (2, 40, 6, 5, 7), dict(padding=1)), (F.conv2d, (2, 40, 9, 8), dict(stride=2, padding=1)),
                                        (F.conv_transpose2d, (2, 40, 9, 8), dict(stride=2, padding=1)), (F.conv2d, (2, 40, 16, 16), {})):
        taps = 1 if not options else 3
        weight_shape = (40, outputs) if convolution is F.conv_transpose2d else (40 * outputs, 1)
        image = torch.randn(shape, dtype=torch.float64)
        weight = torch.randn(*weight_shape, *[taps] * (len(shape) - 2), dtype=torch.float64)
        bias = torch.randn(40 * outputs, dtype=torch.float64)
        leaves = [tensor.to(device).requires_grad_() for tensor in (image, weight)]
        assert launches_of(convolution, *leaves, groups=40, **options) <= 14
        expected, got = ([value.detach().cpu() for value in all_results(convolution, where, (image, weight, bias), options)] for where in ("cpu", device))
        for a, b in zip(got, expected, strict=True):
            torch.testing.assert_close(a, b)


def all_results(convolution, where, tensors, options):
    leaves = [tensor.detach().to(where, copy=True).requires_grad_() for tensor in tensors]
    out = convolution(*leaves, groups=40, **options)
    return [out, *torch.autograd.grad(out, leaves, torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape).to(where))]


@pytest.mark.parametrize("pool", [lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: F.max_pool2d(x, 2), lambda x: F.max_pool2d(x, (3, 2), 1, dilation=2),
                                  lambda x: F.adaptive_max_pool2d(x, (5, 3)), lambda x: F.max_pool1d(x[:, :, 0], 4, 3),
                                  lambda x: F.max_pool3d(x, 3, 1, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_of_the_places_that_windows_chose(pool, dtype, device):
    torch.manual_seed(0)
    image = torch.randn(3, 5, 13, 12).to(dtype)
    # The CPU would round the sums of bfloat16 after each window.
    gradients = []
    for where, computed in (("cpu", torch.float32), (device, dtype)):
        leaf = image.to(where, computed).requires_grad_()
        out = pool(leaf)
        seed = torch.linspace(-1, 1, out.numel()).to(dtype).to(where, computed).view(out.shape)
        gradients.append(torch.autograd.grad(out, leaf, seed)[0].cpu())
    torch.testing.assert_close(gradients[1], gradients[0].to(dtype))
