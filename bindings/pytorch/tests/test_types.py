"""Types that an operator does not have, or has together with others: PyTorch's exception, or the CPU's result."""
import pytest
import torch
import torch.nn.functional as F

from programs import assert_same, gradients, integers, randn

HALF, FLOAT, LONG, BOOL = torch.float16, torch.float32, torch.int64, torch.bool
OF_FLOATS = {
    "gelu": F.gelu, "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "mish": F.mish, "elu": F.elu, "selu": F.selu,
    "softplus": F.softplus, "logsigmoid": F.logsigmoid, "glu": lambda x: F.glu(x, 0), "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish,
    "leaky_relu": F.leaky_relu, "prelu": lambda x: F.prelu(x, x[:1]), "frac": torch.frac, "round": lambda x: torch.round(x, decimals=1),
    "hypot": lambda x: torch.hypot(x, x), "nextafter": lambda x: torch.nextafter(x, x), "logaddexp": lambda x: torch.logaddexp(x, x),
    "lerp": lambda x: torch.lerp(x, x, 0.5), "lerp by a tensor": lambda x: torch.lerp(x, x, x), "mse_loss": lambda x: F.mse_loss(x, x),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x), "huber_loss": lambda x: F.huber_loss(x, x),
    "binary_cross_entropy": lambda x: F.binary_cross_entropy(x, x),
    "binary_cross_entropy_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, x), "dropout": F.dropout,
    "interpolate": lambda x: F.interpolate(x[None, None], 8), "interpolate by lines": lambda x: F.interpolate(x[None, None], 8, mode="linear"),
    "adaptive_avg_pool": lambda x: F.adaptive_avg_pool1d(x[None, None], 2)}
OF_WHOLE_NUMBERS = {
    "and": lambda x: x & 1, "or": lambda x: torch.bitwise_or(x, x), "xor": lambda x: x ^ x, "not": lambda x: ~x, "and in place": lambda x: x.__iand__(x)}
NOT_OF_BOOL = {"mm": lambda x: x[None] @ x[:, None], "dot": lambda x: torch.dot(x, x), "relu": F.relu, "hardtanh": F.hardtanh, "relu_": F.relu_}


def error_of(program, where):
    with pytest.raises((RuntimeError, NotImplementedError, TypeError)) as caught:
        program(torch.device(where))
    return caught.type, str(caught.value).splitlines()[0]


def raises_as_the_cpu_does(program, device):
    assert error_of(program, device) == error_of(program, "cpu")


def refuses_types_as_the_cpu_does(program, device):
    """The text of the error may name the types differently."""
    (there, _), (here, text) = error_of(program, "cpu"), error_of(program, device)
    assert here == there and "type" in text and "compiled" not in text


@pytest.mark.parametrize("table,name,dtype", [
    *((OF_FLOATS, name, dtype) for name in OF_FLOATS for dtype in (LONG, BOOL)),
    *((OF_WHOLE_NUMBERS, name, dtype) for name in OF_WHOLE_NUMBERS for dtype in (FLOAT, HALF)), *((NOT_OF_BOOL, name, BOOL) for name in NOT_OF_BOOL)])
def test_types_that_an_operator_does_not_have(table, name, dtype, device):
    raises_as_the_cpu_does(lambda where: table[name](torch.tensor([1, 0, 2, 1]).to(where, dtype)), device)


@pytest.mark.parametrize("other", [HALF, LONG])
@pytest.mark.parametrize("program", [
    lambda x, other: torch.topk(x, 2, out=(x.new_empty(2, dtype=other), x.new_empty(2, dtype=LONG))),
    lambda x, other: torch.topk(x, 2, out=(x.new_empty(2), x.new_empty(2, dtype=torch.int32))),
    lambda x, other: torch.sort(x, out=(x.new_empty(4, dtype=other), x.new_empty(4, dtype=LONG))),
    lambda x, other: torch.sort(x, out=(x.new_empty(4), x.new_empty(4, dtype=torch.int32))),
    lambda x, other: torch.softmax(x, 0, out=x.new_empty(4, dtype=other)),
    lambda x, other: torch.log_softmax(x, 0, out=x.new_empty(4, dtype=other)),
    lambda x, other: torch.where(x > 1, x, x, out=x.new_empty(4, dtype=other))], ids=["topk", "topk's places", "sort", "sort's places", "softmax",
                                                                                      "log_softmax", "where"])
def test_results_of_another_type_are_not_converted(program, other, device):
    refuses_types_as_the_cpu_does(lambda where: program(torch.tensor([1.0, 3, 2, 0], device=where), other), device)


@pytest.mark.parametrize("dtype", [LONG, torch.int16, torch.uint8, BOOL])
def test_limits_with_a_fraction_of_whole_numbers(dtype, device):
    def program(device):
        x = integers(0, 2 if dtype == BOOL else 5, 3, 4).to(device, dtype)
        return [x.clamp(0.5, 2.5), x.clamp(min=0.5), x.clamp(max=1.5), torch.clamp_min(x, 0.5), torch.clamp(x, max=3), x.clamp(0, 1)]
    assert_same(program, device)


@pytest.mark.parametrize("dtype", [LONG, BOOL, HALF])
def test_losses_of_different_types(dtype, device):
    def program(device):
        x, y = integers(0, 2, 5).to(device, dtype), randn(5).to(device)
        losses = [loss(x, y, reduction=reduction) for loss in (F.mse_loss, F.smooth_l1_loss) for reduction in ("mean", "sum", "none")]
        return losses + [F.mse_loss(y, x), F.smooth_l1_loss(y, x), F.huber_loss(y, x)]
    assert_same(program, device)
    if dtype != HALF:
        raises_as_the_cpu_does(lambda where: F.huber_loss(torch.ones(3, dtype=dtype, device=where), torch.ones(3, device=where)), device)
        refuses_types_as_the_cpu_does(lambda where: F.binary_cross_entropy(torch.ones(3, dtype=dtype, device=where), torch.ones(3, device=where)), device)


@pytest.mark.parametrize("has_bias", [True, False])
def test_a_cell_whose_state_has_another_precision(has_bias, device):
    def program(device):
        torch.manual_seed(0)
        cell = torch.nn.LSTMCell(4, 5, bias=has_bias).to(device)
        x, state, memory = randn(2, 4).to(device), randn(2, 5).to(device), randn(2, 5).to(device, HALF).requires_grad_()
        results = cell(x, (state, memory))
        return [*results, *gradients(results[1], memory, *cell.parameters())]
    assert_same(program, device, rtol=2e-3, atol=2e-3)


def test_an_operator_without_a_kernel_does_not_move_tensors_of_the_cpu(device):
    image, grid = torch.ones(1, 1, 4, 4), torch.zeros(1, 2, 2, 2)
    for given in ((image, grid.to(device)), (image.to(device), grid)):
        with pytest.raises(RuntimeError, match="same device"):
            F.grid_sample(*given, align_corners=False)
    assert torch.heaviside(torch.tensor([-1.0, 1.0], device=device), torch.tensor(0.5)).tolist() == [0, 1]  # a number
