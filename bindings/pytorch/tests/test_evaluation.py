"""Models in evaluation, where PyTorch's modules call whole layers as one operator, and tensors handed over by DLPack."""
import pytest
import torch
from torch import nn


@pytest.fixture(autouse=True)
def nothing_runs_on_the_cpu():
    torch.opencl.reset_fallbacks()
    yield
    assert torch.opencl.fallbacks() == {}


def evaluated(model, device, *inputs, **options):
    """The CPU's result and the device's."""
    results = []
    for where in ("cpu", device):
        given = {name: value.to(where) if isinstance(value, torch.Tensor) else value for name, value in options.items()}
        with torch.no_grad():
            results.append(model.to(where).eval()(*(x.to(where) for x in inputs), **given))
    return results


def check(model, device, *inputs, **options):
    expected, got = evaluated(model, device, *inputs, **options)
    for a, b in zip(*((each if isinstance(each, tuple) else (each,)) for each in (got, expected))):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-5)


def encoder(**options):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, **options)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


@pytest.mark.parametrize("options", [dict(), dict(norm_first=True, activation="gelu"), dict(layer_norm_eps=0.1)])
def test_an_encoder(options, device):
    check(encoder(**options), device, torch.randn(2, 17, 32))


def test_an_encoder_with_masks(device):
    x = torch.randn(3, 9, 32)
    causal = torch.triu(torch.ones(9, 9, dtype=torch.bool), 1)
    padding = torch.zeros(3, 9, dtype=torch.bool)
    padding[1, 6:] = padding[2, 4:] = True
    check(encoder(), device, x, mask=causal)
    check(encoder(), device, x, src_key_padding_mask=padding)
    check(encoder(), device, x, mask=causal, src_key_padding_mask=padding)


@pytest.mark.parametrize("options", [dict(), dict(norm=nn.LayerNorm(32)), dict(mask_check=False)])
def test_an_encoder_that_nests_its_batch_on_the_cpu(options, device):
    """Its result has zeros where the padding was; not where the mask leaves out a place in the middle."""
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, **options)
    padding = torch.zeros(3, 9, dtype=torch.bool)
    padding[1, 6:] = padding[2, 4:] = True
    check(model, device, torch.randn(3, 9, 32), src_key_padding_mask=padding)
    if options != dict(mask_check=False):
        padding[0, 3] = True
        check(model, device, torch.randn(3, 9, 32), src_key_padding_mask=padding)


def test_an_encoder_in_torchscript(device):
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)
    x = torch.randn(3, 9, 32)
    expected = model.eval()(x)
    torch.testing.assert_close(torch.jit.script(model.to(device))(x.to(device)).cpu(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weights", [dict(need_weights=False), dict(need_weights=True),
                                     dict(need_weights=True, average_attn_weights=False)])
def test_attention_modules(weights, device):
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(32, 4, batch_first=True)
    x, y = torch.randn(2, 7, 32), torch.randn(2, 5, 32)
    check(attention, device, x, x, x, **weights)
    check(attention, device, x, y, y, **weights)
    check(attention, device, x, x, x, attn_mask=torch.triu(torch.ones(7, 7, dtype=torch.bool), 1), **weights)
    check(attention, device, x, x, x, key_padding_mask=torch.arange(7) >= torch.tensor([[7], [4]]), **weights)


def test_dlpack(device):
    x = torch.arange(12.0, device=device).reshape(3, 4)[1:, ::2]
    for again in (torch.from_dlpack(x), torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))):
        assert again.device == torch.device(device) and again.stride() == x.stride()
        assert again.data_ptr() == x.data_ptr() and torch.equal(again, x)
    again.fill_(7)
    assert torch.equal(x.cpu(), torch.full((2, 2), 7.0))
    assert torch.from_dlpack(torch.ones(2)).device.type == "cpu"
