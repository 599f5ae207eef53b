"""Results for inputs in channels_last have the strides that the CPU gives them. Those of convolutions are contiguous (decision 304)."""
import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

OPERATORS = {
    "batch norm": nn.BatchNorm2d(8), "batch norm in evaluation": nn.BatchNorm2d(8).eval(), "group norm": nn.GroupNorm(2, 8),
    "max pool": nn.MaxPool2d(2), "average pool": nn.AvgPool2d(2), "adaptive average pool": nn.AdaptiveAvgPool2d(3),
    "adaptive max pool": nn.AdaptiveMaxPool2d(3), "nearest": nn.Upsample(scale_factor=2), "bilinear": nn.Upsample(scale_factor=2, mode="bilinear"),
    "bicubic": nn.Upsample(scale_factor=2, mode="bicubic"), "silu": nn.SiLU(), "prelu": nn.PReLU(8), "softmax": nn.Softmax(1),
    "zero pad": nn.ZeroPad2d(1), "reflection pad": nn.ReflectionPad2d(1), "replication pad": nn.ReplicationPad2d(1),
    "pixel shuffle": nn.PixelShuffle(2), "pixel unshuffle": nn.PixelUnshuffle(2), "channel shuffle": nn.ChannelShuffle(2),
    "where": lambda x: torch.where(x > 0, x, 0.0), "flip": lambda x: x.flip(3), "roll": lambda x: x.roll(1, 2), "cat": lambda x: torch.cat([x, x], 1),
    "broadcast": lambda x: x * torch.ones(8, 1, 1, device=x.device), "local response norm": nn.LocalResponseNorm(3),
    "grid sample": lambda x: F.grid_sample(x, torch.zeros(2, 5, 5, 2, device=x.device), align_corners=False),
}
VOLUMES = {"batch norm": nn.BatchNorm3d(4), "max pool": nn.MaxPool3d(2), "average pool": nn.AvgPool3d(2), "nearest": nn.Upsample(scale_factor=2),
           "adaptive average pool": nn.AdaptiveAvgPool3d(2), "trilinear": nn.Upsample(scale_factor=2, mode="trilinear")}


def check(operator, image, device):
    torch.manual_seed(0)
    results = []
    for where in ("cpu", device):
        function = copy.deepcopy(operator).to(where) if isinstance(operator, nn.Module) else operator
        x = image.to(where).detach().requires_grad_()
        out = function(x)
        out.square().sum().backward()
        results.append((out, x.grad))
    for a, b in zip(results[1], results[0], strict=True):
        assert a.stride() == b.stride()
        torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OPERATORS)
def test_images(name, device):
    torch.manual_seed(1)
    check(OPERATORS[name], torch.randn(2, 8, 12, 10).contiguous(memory_format=torch.channels_last), device)


@pytest.mark.parametrize("name", VOLUMES)
def test_volumes(name, device):
    torch.manual_seed(1)
    check(VOLUMES[name], torch.randn(2, 4, 5, 6, 7).contiguous(memory_format=torch.channels_last_3d), device)
