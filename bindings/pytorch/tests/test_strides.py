"""Tensors whose elements do not follow each other in memory, where an operator reads or writes more than its main input."""
import pytest
import torch
import torch.nn.functional as F


def spread(tensor):
    """The same elements, with gaps between them."""
    return torch.stack([tensor, torch.full_like(tensor, 77)], -1)[..., 0]


@pytest.mark.parametrize("shapes, arguments", [
    ([(2, 4, 9, 9), (6, 4, 3, 3)], {"padding": 1}), ([(2, 4, 9, 9), (6, 2, 3, 3)], {"groups": 2, "dilation": 2}),
    ([(2, 4, 9), (4, 1, 3)], {"groups": 4}), ([(1, 2, 5, 5, 5), (3, 2, 3, 3, 3)], {"stride": 2})])
def test_convolutions(shapes, arguments, device):
    x, weight = (torch.randn(shape) for shape in shapes)
    bias = torch.randn(weight.shape[0])
    function = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[x.dim()]
    got = function(*(spread(each.to(device)) for each in (x, weight, bias)), **arguments)
    torch.testing.assert_close(got.cpu(), function(x, weight, bias, **arguments), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [3, 40])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(channels, training, device):
    x, weight, bias, mean, gradient = (torch.randn(shape) for shape in [(5, channels, 7)] + 3 * [(channels,)] + [(5, channels, 7)])
    var = torch.rand(channels) + 1

    def run(where, change):
        tensors = [change(each.to(where).clone()) for each in (x, weight, bias, mean, var)]
        leaves = [each.requires_grad_() for each in tensors[:3]]
        result = F.batch_norm(leaves[0], tensors[3], tensors[4], *leaves[1:], training=training)
        gradients = torch.autograd.grad(result, leaves, change(gradient.to(where)))
        return [each.detach().cpu() for each in (result, tensors[3], tensors[4], *gradients)]

    for got, expected in zip(run(device, spread), run("cpu", lambda each: each)):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make", [
    lambda parameters, fused: torch.optim.SGD(parameters, 0.1, fused=fused),
    lambda parameters, fused: torch.optim.SGD(parameters, 0.1, 0.9, fused=fused),
    lambda parameters, fused: torch.optim.Adam(parameters, 0.1, amsgrad=True, fused=fused)])
def test_fused_optimizers(make, device):
    """A parameter with gaps, and one whose gradient has another order of dimensions. The CPU's fused optimizers change the gaps."""
    first, second, gradients = torch.randn(4, 8), torch.randn(4, 8), [torch.randn(3, 4, 8), torch.randn(3, 8, 4)]

    def run(where):
        whole = torch.stack([first, torch.full_like(first, 77)], -1).to(where)
        parameters = [whole[..., 0].requires_grad_(), second.to(where).clone().requires_grad_()]
        optimizer = make(parameters, fused=where != "cpu")
        for step in range(3):
            parameters[0].grad, parameters[1].grad = gradients[0][step].to(where), gradients[1][step].to(where).t()
            optimizer.step()
        state = optimizer.state[parameters[1]]
        assert whole[..., 1].eq(77).all()
        return [each.detach().cpu() for each in [*parameters, *(state[name] for name in sorted(state) if state[name] is not None)]]

    for got, expected in zip(run(device), run("cpu"), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def test_channels_are_shuffled(device):
    x = torch.randn(2, 4, 3, 3)
    assert torch.equal(F.channel_shuffle(spread(x.to(device)).transpose(0, 2), 2).cpu(), F.channel_shuffle(x.transpose(0, 2), 2))
