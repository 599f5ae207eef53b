"""torch.compile: numbers on the CPU beside tensors of a device. Operators accept CPU tensors without dimensions there, and their result is on the
device."""
import pytest
import torch
import torch.nn as nn

from programs import assert_same, integers, made, randn


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function, where, **options):
    return torch.compile(function, **options) if where.type == "opencl" else function


def check(function, *numbers, device, inputs=None):
    """The numbers stay on the CPU; the results of two calls, and the numbers afterwards, are those of eager mode on the CPU."""
    def program(where):
        run, given = compiled(function, where), [number.clone() for number in numbers]
        results = []
        for seed in range(2):
            x = (randn(6, 5, seed=seed) if inputs is None else inputs.clone()).to(where)
            result = run(x, *given)
            assert torch.utils._pytree.tree_all_only(torch.Tensor, lambda part: part.dim() == 0 or part.device == x.device, result)
            results.append(result)
        assert all(number.device.type == "cpu" for number in given)
        return results, given

    assert_same(program, device)


FUNCTIONS = {
    "second": lambda x, s: x - s,
    "first": lambda x, s: s - x,
    "both": lambda x, s: (s / (x * x + s)).exp(),
    "computed first": lambda x, s: (1 - 0.5 ** s) * x,
    "reduced": lambda x, s: (s * x).sum(1),
    "after a reduction": lambda x, s: x.softmax(1) * s,
    "selected": lambda x, s: torch.where(x > 0, s, x),
    "condition": lambda x, s: torch.where(s > 1, x, -x),
    "masked": lambda x, s: x.masked_fill(x > 0, s),
    "limit": lambda x, s: x.clamp(min=-s, max=s),
    "weight": lambda x, s: x.lerp(x * 2, s),
    "power": lambda x, s: (x.abs() ** s, s ** x),
    "list": lambda x, s: torch._foreach_mul([x, x + 1], s),
    "stored": lambda x, s: x.clone().fill_(s),
    "a row": lambda x, s: torch.cat([x, torch.zeros_like(x).index_fill(0, torch.tensor([1, 2], device=x.device), 2.0) + s]),
    "padded": lambda x, s: nn.functional.pad(x * s, (1, 2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_number_on_the_cpu(name, device):
    check(FUNCTIONS[name], torch.tensor(1.5), device=device)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32,
                                   torch.int64])
def test_types(dtype, device):
    if dtype == torch.float64 and not torch.opencl.get_device_properties(device).has_fp64:
        pytest.skip("no double precision")
    number = torch.tensor(1 if dtype == torch.bool else 77).to(dtype)
    check(lambda x, s: (x + s, s * x.long(), torch.where(x > 0, s, 2)), number, device=device)
    if dtype == torch.int64:
        check(lambda x, s: s + x.long(), torch.tensor((1 << 53) + 1), device=device)


def test_numbers_that_the_program_changes(device):
    def steps(x, s, t):
        before = x * s
        s.add_(1)
        between = x * s
        t.copy_(s * 2)
        s.mul_(t)
        return before, between, t - x, x + s

    check(steps, torch.tensor(3.0), torch.tensor(0.0), device=device)


def test_results_of_the_device_that_are_stored_in_a_number(device):
    def program(where):
        s = torch.tensor(1.0)

        def step(x, s):
            s.copy_((x * s).sum())
            return x * s

        run = compiled(step, where)
        return [run(randn(6, 5, seed=seed).to(where), s) for seed in range(3)], s

    assert_same(program, device)


def test_elements_of_larger_tensors_on_the_cpu(device):
    check(lambda x, v: (x * v[0], v[3] - x, x + v[1:].t()[2] * v[3]), torch.tensor([2.0, 3.0, 5.0, 7.0]), device=device)
    check(lambda x, v: x * v[1, 2], integers(-9, 9, 8, 9)[2:, 1::2], device=device)


def test_elements_whose_place_varies(device):
    def program(where):
        run, numbers = compiled(lambda x, v, i: x * v[i] - v[i + 1], where, dynamic=True), randn(9)
        return [run(randn(4, 3).to(where), numbers, i) for i in (2, 5, 7)]

    assert_same(program, device)


def test_floats_that_vary(device):
    def program(where):
        run = compiled(lambda x, rate: x * rate + rate, where)
        return [run(randn(4, 3).to(where), rate) for rate in (0.5, 0.25, 3.0, -1.0)]

    assert_same(program, device)


def test_indices_on_the_cpu(device):
    check(lambda x, i: (x[i] * 2, x[:, i]), torch.tensor([3, 1, 0]), device=device)


def test_numbers_in_a_model_that_trains(device):
    """The number is used forward and backward."""
    def program(where):
        model, scale = made(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), where), torch.tensor(0.5)
        loss_of = compiled(lambda x, s: (s * model(x)).square().sum() / s, where)
        results = []
        for seed in range(2):
            loss = loss_of(randn(6, 5, seed=seed).to(where), scale)
            loss.backward()
            results.append([loss.detach(), [p.grad.clone() for p in model.parameters()]])
            scale += 1
        return results

    assert_same(program, device)


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True),
    "Adam, one by one": lambda p: torch.optim.Adam(p, lr=0.1, foreach=False),
    "Adam with a rate that is a tensor": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.1)),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.1),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.1),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_compiled_optimizers(name, device):
    def program(where):
        model, x = made(lambda: nn.Linear(4, 3), where), randn(5, 4).to(where)
        optimizer = OPTIMIZERS[name](model.parameters())
        step = compiled(optimizer.step, where)
        for _ in range(7):  # RAdam changes its rule after five
            optimizer.zero_grad()
            model(x).square().sum().backward()
            step()
        return list(model.parameters()), [state.get("step") for state in optimizer.state.values()]

    assert_same(program, device, rtol=1e-3, atol=1e-3)
