"""Modules move to a device and back in place, as between other backends of PyTorch."""
import copy

import pytest
import torch
from torch import nn


class Tied(nn.Module):
    """The last layer has the weights of the first."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 5)
        self.out = nn.Linear(5, 7, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, indices):
        return self.out(self.embedding(indices))


def step(model, optimizer):
    device = next(model.parameters()).device
    optimizer.zero_grad()
    model(torch.arange(4, device=device)).square().sum().backward()
    optimizer.step()


def test_parameters_stay_the_same_objects(device):
    model = Tied()
    weight = model.embedding.weight
    model.to(device)
    assert model.out.weight is weight and model.embedding.weight is weight
    assert weight.device == torch.device(device) and len(list(model.parameters())) == 1
    model.cpu()
    assert model.out.weight is weight and weight.device.type == "cpu"


def test_an_optimizer_may_be_made_before_the_model_moves(device):
    torch.manual_seed(3)
    expected = Tied()
    model = copy.deepcopy(expected)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.01) for one in (expected, model)]
    model.to(device)
    for _ in range(3):
        step(expected, optimizers[0])
        step(model, optimizers[1])
    torch.testing.assert_close(model.embedding.weight.cpu(), expected.embedding.weight, rtol=1e-4, atol=1e-4)
    # Back on the CPU, with gradients, after graphs have used the parameters.
    model.cpu()
    step(expected, optimizers[0])
    step(model, optimizers[1])
    torch.testing.assert_close(model.embedding.weight, expected.embedding.weight, rtol=1e-4, atol=1e-4)


def test_gradients_move_with_their_parameters(device):
    model = Tied()
    model(torch.arange(3)).sum().backward()
    weight, expected = model.embedding.weight, model.embedding.weight.grad.clone()
    model.to(device)
    assert weight.grad.device == torch.device(device)
    torch.testing.assert_close(weight.grad.cpu(), expected)


def test_data_of_a_parameter_may_come_from_another_device(device):
    x = nn.Parameter(torch.ones(3))
    x.data = torch.full((2, 2), 5.0, device=device)
    assert x.device == torch.device(device) and x.requires_grad and x.shape == (2, 2)
    (x * x).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), torch.full((2, 2), 10.0))
    x.grad = None
    x.data = torch.zeros(4)
    assert x.device.type == "cpu"


def test_data_of_a_dense_tensor_is_not_sparse(device):
    x = torch.ones(3, device=device)
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        x.data = torch.ones(3).to_sparse()
    assert not torch._has_compatible_shallow_copy_type(x, torch.ones(3, device="meta"))


def test_a_model_on_no_device_gets_memory(device):
    with torch.device("meta"):
        model = Tied()
    model.to_empty(device=device)
    assert model.embedding.weight.device == torch.device(device)


@pytest.mark.parametrize("dtype,tolerance", [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize("dim", [0, 2])
def test_weight_norm_runs_on_the_device(dim, dtype, tolerance, device):
    results = []
    torch.opencl.reset_fallbacks()
    for where in ("cpu", device):
        torch.manual_seed(0)
        layer = nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 4, 5, dtype=dtype), dim=dim).to(where)
        weights = torch.linspace(-1, 1, layer.weight.numel(), dtype=dtype).view(layer.weight.shape).to(where)
        results.append([layer.weight, *torch.autograd.grad(layer.weight, list(layer.parametrizations.weight.parameters()), weights)])
    assert not [name for name in torch.opencl.fallbacks() if "weight_norm" in name]
    for got, expected in zip(results[1], results[0]):
        torch.testing.assert_close(got.cpu(), expected, rtol=tolerance, atol=tolerance)
