"""What the tests of users' programs share. A program is a function of a device; its results on a device are those on the CPU."""
import warnings

import torch


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def integers(low, high, *shape, seed=0):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


def gradients(output, *inputs):
    """The output, and the gradients of the sum of its squares."""
    return [output, *torch.autograd.grad(output.abs().square().sum(), inputs, retain_graph=True)]


def on_cpu(value):
    return torch.utils._pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().cpu().resolve_conj().resolve_neg(), value)


def made(make, device, training=True):
    """A module whose parameters are made on the CPU, from one seed, and moved."""
    torch.manual_seed(0)
    return make().to(device).train(training)


def assert_same(program, device, rtol=2e-4, atol=2e-4):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, got = (on_cpu(program(torch.device(where))) for where in ("cpu", device))
    torch.testing.assert_close(got, expected, rtol=rtol, atol=atol, equal_nan=True)
