"""Models train as on the CPU, without an operator that runs on the CPU, on each device and on two together."""
import io
import os

import pytest
import torch
import torch.utils.checkpoint

import models

# Fifty steps of the ResNet take longer than all other tests of this file: TORCH_OPENCL_LONG_TESTS=1.
STEPS = {"perceptron": 50, "resnet18": 50 if os.environ.get("TORCH_OPENCL_LONG_TESTS") == "1" else 12, "transformer": 50}


@pytest.mark.parametrize("task", models.TASKS)
def test_losses_are_those_of_the_cpu(task, device):
    steps = STEPS[task]
    expected = models.train(task, "cpu", steps)
    torch.opencl.reset_fallbacks()
    got = models.train(task, device, steps)
    assert torch.opencl.fallbacks() == {}
    # Rounding differs, and training amplifies it.
    torch.testing.assert_close(torch.tensor(got), torch.tensor(expected), rtol=0.05, atol=0.02)
    torch.testing.assert_close(torch.tensor(got[:3]), torch.tensor(expected[:3]), rtol=1e-3, atol=1e-3)
    assert got[-1] < got[0]


@pytest.mark.parametrize("use_reentrant", (True, False))
def test_checkpoints_repeat_random_numbers(device, use_reentrant):
    x = torch.ones(1000, device=device, requires_grad=True)
    torch.rand(5, device=device)  # the generator is not where a seed puts it
    y = torch.utils.checkpoint.checkpoint(torch.nn.Dropout(0.5), x, use_reentrant=use_reentrant)
    state = torch.opencl.get_rng_state(device)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach(), rtol=0, atol=0)
    # What is drawn next is what would be drawn without the backward pass.
    assert torch.equal(torch.opencl.get_rng_state(device), state)


def test_memory_of_a_step_is_given_back(device):
    live = []
    models.train("transformer", device, 6, lambda step: live.append(torch.opencl.memory_allocated(device)))
    assert live[-1] == live[2] + 3 * 4  # the losses of three steps, which train() keeps


def test_two_devices_train_one_model(two_devices):
    """Each device takes half of a batch; gradients are averaged by copies between the devices."""
    inputs, targets = models.digits()
    torch.manual_seed(0)
    alone = models.perceptron()
    replicas = [models.perceptron().to(name) for name in two_devices]
    for replica in replicas:
        replica.load_state_dict(alone.state_dict())
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (alone, *replicas)]
    for step in range(10):
        x, y = inputs[step * 64:step * 64 + 64], targets[step * 64:step * 64 + 64]
        for optimizer in optimizers:
            optimizer.zero_grad()
        models.loss_of(alone, x, y).backward()
        for half, (replica, name) in enumerate(zip(replicas, two_devices)):
            models.loss_of(replica, x[half * 32:half * 32 + 32].to(name), y[half * 32:half * 32 + 32].to(name)).backward()
        for a, b in zip(*(replica.parameters() for replica in replicas)):
            mean = (a.grad + b.grad.to(a.device)) / 2
            a.grad.copy_(mean)
            b.grad.copy_(mean)
        for optimizer in optimizers:
            optimizer.step()
    for expected, *got in zip(alone.parameters(), *(replica.parameters() for replica in replicas)):
        assert torch.equal(got[0].cpu(), got[1].cpu())
        torch.testing.assert_close(got[0].detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-5)


def test_training_resumes_from_a_checkpoint(device):
    def steps(model, optimizer, count, first):
        inputs, targets = (part.to(device) for part in models.digits())
        losses = []
        for step in range(first, first + count):
            optimizer.zero_grad()
            loss = models.loss_of(model, inputs[step * 32:step * 32 + 32], targets[step * 32:step * 32 + 32])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    torch.manual_seed(0)
    model = models.perceptron().to(device)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    steps(model, optimizer, 3, 0)
    file = io.BytesIO()
    torch.save((model.state_dict(), optimizer.state_dict()), file)
    expected = steps(model, optimizer, 3, 3)
    file.seek(0)
    weights, state = torch.load(file)
    again = models.perceptron().to(device)
    again.load_state_dict(weights)
    optimizer = torch.optim.Adam(again.parameters(), fused=True)
    optimizer.load_state_dict(state)
    assert steps(again, optimizer, 3, 3) == expected
