"""Cases that OpInfo's samples do not cover: fused attention, autocast, optimizers, convolutions of every shape, half precision."""
import copy
import itertools

import pytest
import torch
import torch.nn.functional as F

import models


def both(function, device, *tensors):
    """The results and gradients of a function on the CPU and on a device."""
    results = []
    for where in ("cpu", device):
        leaves = [tensor.detach().to(where).requires_grad_(tensor.is_floating_point()) for tensor in tensors]
        out = function(*leaves)
        seed = torch.linspace(-1, 1, out.numel()).reshape(out.shape).to(where, out.dtype)
        differentiable = [leaf for leaf in leaves if leaf.requires_grad]
        results.append([out.detach().cpu()] + [g.cpu() for g in torch.autograd.grad(out, differentiable, seed)])
    return results


def assert_same(function, device, *tensors, tolerance=2e-4):
    expected, got = both(function, device, *tensors)
    for a, b in zip(got, expected):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def randn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("queries,keys", [(17, 17), (5, 33), (64, 8)])
def test_attention(causal, queries, keys, device):
    q, k, v = randn(2, 3, queries, 16), randn(2, 3, keys, 16), randn(2, 3, keys, 8)
    torch.opencl.reset_fallbacks()
    assert_same(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), device, q, k, v)
    assert torch.opencl.fallbacks() == {}


def test_attention_with_masks(device):
    q, k, v = randn(2, 3, 9, 16), randn(2, 3, 12, 16), randn(2, 3, 12, 16)
    bias, keep = randn(9, 12), randn(2, 1, 9, 12) > -1
    assert_same(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.device)), device, q, k, v)
    assert_same(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=keep.to(q.device), scale=0.5), device, q, k, v)


def test_attention_is_fused(device):
    q = randn(1, 2, 8, 8).to(device)
    before = torch.opencl.kernel_launches()
    F.scaled_dot_product_attention(q, q, q, is_causal=True)
    assert torch.opencl.kernel_launches() - before <= 4


def test_attention_of_transposed_views(device):
    def heads(x):
        return x.view(2, 10, 4, 8).transpose(1, 2)

    assert_same(lambda x: F.scaled_dot_product_attention(*(heads(part) for part in x.split(32, 2)), is_causal=True), device, randn(2, 10, 96))


CONVOLUTIONS = list(itertools.product((1, 2), (0, 1, 2), (1, 2), (1, 2, 4), (False, True)))


@pytest.mark.parametrize("stride,padding,dilation,groups,transposed", CONVOLUTIONS)
def test_convolutions(stride, padding, dilation, groups, transposed, device):
    x, bias = randn(3, 4, 9, 7), randn(8)
    weight = randn(4, 8 // groups, 3, 2) if transposed else randn(8, 4 // groups, 3, 2)
    function = F.conv_transpose2d if transposed else F.conv2d
    assert_same(lambda x, w, b: function(x, w, b, stride=stride, padding=padding, dilation=dilation, groups=groups), device, x, weight, bias)


def test_a_convolution_that_is_a_product_and_one_in_parts(device):
    assert_same(F.conv2d, device, randn(2, 5, 6, 6), randn(7, 5, 1, 1))
    # 64 MiB of unfolded places are passed, so that the batch is computed in parts. Only images of float32 are not unfolded.
    assert_same(lambda x, w: F.conv2d(x, w, padding=2), device, randn(3, 8, 200, 200).double(), randn(2, 8, 5, 5).double())


@pytest.mark.parametrize("kernel,stride,padding,size", [(3, 1, 1, 1), (1, 1, 0, 1), (1, 1, 0, 3), (1, 1, 0, 4), (1, 2, 0, 3), (2, 2, 0, 2), (5, 3, 4, 3)])
def test_convolutions_of_small_images_are_one_product(kernel, stride, padding, size, device):
    """Columns of a tile belong to several images."""
    x, weight, bias = randn(17, 6, size, size), randn(20, 6, kernel, kernel), randn(20)
    assert_same(lambda x, w, b: F.conv2d(x, w, b, stride, padding), device, x, weight, bias)
    before = torch.opencl.kernel_launches()
    F.conv2d(x.to(device), weight.to(device), bias.to(device), stride, padding)
    assert torch.opencl.kernel_launches() - before <= 2


@pytest.mark.parametrize("optimizer,options", [
    (torch.optim.SGD, dict(lr=0.1)), (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
    (torch.optim.SGD, dict(lr=0.1, momentum=0.9, dampening=0.1, maximize=True)),
    (torch.optim.Adam, dict(lr=0.01, weight_decay=0.1)), (torch.optim.Adam, dict(lr=0.01, amsgrad=True)),
    (torch.optim.AdamW, dict(lr=0.01, weight_decay=0.1)), (torch.optim.AdamW, dict(lr=0.01, maximize=True))])
def test_fused_optimizers(optimizer, options, device):
    steps = []
    for where in ("cpu", device):
        weights = [randn(5, 3).to(where).requires_grad_(), randn(7).to(where).requires_grad_()]
        fused = optimizer(weights, **options, fused=True if where != "cpu" else None)
        for _ in range(4):
            fused.zero_grad()
            sum((weight ** 2).sum() + weight.sum() for weight in weights).backward()
            fused.step()
        steps.append([weight.detach().cpu() for weight in weights])
    for expected, got in zip(*steps):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def test_optimizers_that_are_not_fused(device):
    for optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop):
        results = []
        for where in ("cpu", device):
            weight = randn(6).to(where).requires_grad_()
            plain = optimizer([weight], lr=0.01)
            for _ in range(3):
                plain.zero_grad()
                (weight ** 3).sum().backward()
                plain.step()
            results.append(weight.detach().cpu())
        torch.testing.assert_close(*results, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype, device):
    model = models.perceptron().to(device)
    x = randn(4, 64).to(device)
    with torch.autocast("opencl", dtype=dtype):
        out = model(x)
        assert out.dtype == dtype
        assert F.cross_entropy(out, torch.zeros(4, dtype=torch.long, device=device)).dtype == torch.float32
    torch.testing.assert_close(out.float(), model(x), rtol=0.05, atol=0.05)
    with torch.autocast("opencl", dtype=dtype):
        models.loss_of(model, x, torch.zeros(4, dtype=torch.long, device=device)).backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_dropout_keeps_the_mean(device):
    torch.manual_seed(1)
    x = torch.ones(200000, device=device)
    y = F.dropout(x, 0.25)
    assert abs(y.mean().item() - 1) < 0.02
    assert sorted(set(y.cpu().tolist())) == pytest.approx([0, 4 / 3])


def test_gradcheck(device):
    x, w = (randn(3, 4).double().to(device).requires_grad_() for _ in range(2))
    assert torch.autograd.gradcheck(lambda a, b: F.layer_norm(F.gelu(a @ b.t()), (3,)).exp(), (x, w))
    image, kernel = randn(1, 2, 5, 5).double().to(device).requires_grad_(), randn(2, 2, 3, 3).double().to(device).requires_grad_()
    assert torch.autograd.gradcheck(lambda i, k: F.avg_pool2d(F.conv2d(i, k, padding=1), 2).tanh(), (image, kernel))


@pytest.mark.parametrize("rows, columns, inner", [(7, 16, 5), (50, 33, 64), (300, 10, 20), (13, 17, 700), (64, 48, 1)])
def test_products_with_a_transposed_factor(device, rows, columns, inner):
    """Its columns are copied to local memory, or where they are too long, the whole factor is copied."""
    generator = torch.Generator().manual_seed(rows)
    a, b = (torch.randn(3, size, inner, generator=generator) for size in (rows, columns))
    bias = torch.randn(columns, generator=generator)
    got = torch.baddbmm(bias.to(device), a.to(device), b.to(device).transpose(1, 2))
    torch.testing.assert_close(got.cpu(), torch.baddbmm(bias, a, b.transpose(1, 2)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows, columns, inner", [(48, 128, 64), (100, 100, 300), (97, 33, 1024), (60, 128, 1100)])
def test_products_with_a_factor_whose_rows_are_a_power_of_two_apart(device, rows, columns, inner):
    """On processors columns of it are copied to local memory, unless they are too long."""
    generator = torch.Generator().manual_seed(rows)
    a, b = torch.randn(rows, inner, generator=generator), torch.randn(inner, 128, generator=generator)
    expected = a @ b[:, 3:3 + columns] if columns < 128 else a @ b
    on_device = b.to(device)[:, 3:3 + columns] if columns < 128 else b.to(device)
    torch.testing.assert_close((a.to(device) @ on_device).cpu(), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close((a.t().contiguous().to(device).t() @ on_device).cpu(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64])
@pytest.mark.parametrize("rows, columns, inner", [(13, 5, 300), (97, 17, 257), (110, 130, 513), (400, 150, 300), (14, 500, 200), (900, 1100, 280),
                                                  (12, 16, 64), (11, 33, 40), (25, 32, 256), (107, 31, 257), (23, 47, 20), (1030, 40, 200)])
def test_products_by_blocks(device, rows, columns, inner, dtype):
    """On processors deep products go by blocks of 256 (128) in each direction of either factor; sums of blocks wait in between. Tiles
    have 6 rows and 16 columns, or 12 and 32."""
    generator = torch.Generator().manual_seed(rows)
    a, b, c = (torch.randint(-4, 5, size, generator=generator) for size in ((2, rows, inner), (2, inner, columns), (rows, columns)))
    expected = (2 * c + 3 * (a @ b)).double()
    a, b, c = ((part / 4 if dtype == torch.float16 else part).to(dtype) for part in (a, b, c))
    divisor = 16 if dtype == torch.float16 else 1
    for a_order in (a, a.mT.contiguous().mT):
        for b_order in (b, b.mT.contiguous().mT):
            got = torch.baddbmm(c.to(device), a_order.to(device), b_order.to(device), beta=2 * 4 / divisor if divisor > 1 else 2, alpha=3)
            torch.testing.assert_close(got.cpu().double() * divisor, expected, rtol=2e-3 if divisor > 1 else 1e-12, atol=1 if divisor > 1 else 0)


def test_erf_is_exact_to_four_units(device):
    x = torch.cat([torch.linspace(-6, 6, 100001), torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-30])])
    torch.testing.assert_close(torch.erf(x.to(device)).cpu().double(), torch.erf(x.double()), rtol=4e-7, atol=0, equal_nan=True)


@pytest.mark.parametrize("optimizer, options", [(torch.optim.AdamW, dict(amsgrad=False)), (torch.optim.AdamW, dict(amsgrad=True)),
                                                (torch.optim.SGD, dict()), (torch.optim.SGD, dict(momentum=0.9))])
def test_an_optimizer_of_many_parameters(device, optimizer, options):
    """Several parameters are one launch: more than one launch takes, of different sizes and types, one without elements."""
    sizes = [(3,), (40, 9), (0,), (1,), (17, 65), (5, 5), (100,), (2, 3, 4), (2000,), (64,), (512,)]
    generator = torch.Generator().manual_seed(0)
    mine, theirs = [], []
    for place, size in enumerate(sizes):
        value = torch.randn(size, generator=generator).to(torch.float64 if place == 6 else torch.float32)
        theirs.append(value.clone().requires_grad_())
        mine.append(value.to(device).requires_grad_())
    optimizers = [optimizer(p, lr=0.01, fused=True, **options) for p in (mine, theirs)]
    for step in range(3):
        for a, b in zip(mine, theirs):
            b.grad = torch.randn(b.shape, generator=generator).to(b.dtype)
            a.grad = b.grad.to(device)
        before = torch.opencl.kernel_launches()
        optimizers[0].step()
        # The first step also makes the optimizer's state.
        assert step == 0 or torch.opencl.kernel_launches() - before < len(sizes) - 3
        optimizers[1].step()
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind, options", [
    (torch.nn.LSTM, {}), (torch.nn.LSTM, dict(bidirectional=True, bias=False)), (torch.nn.LSTM, dict(proj_size=3)), (torch.nn.GRU, {}),
    (torch.nn.GRU, dict(bidirectional=True, bias=False)), (torch.nn.RNN, dict(nonlinearity="relu")), (torch.nn.LSTMCell, {}), (torch.nn.GRUCell, {})])
def test_recurrent_networks(kind, options, device):
    torch.manual_seed(1)
    model = kind(5, 7, **options) if "Cell" in kind.__name__ else kind(5, 7, num_layers=2, **options)
    x = randn(3, 5) if "Cell" in kind.__name__ else randn(6, 3, 5)
    torch.opencl.reset_fallbacks()
    results = []
    for where in ("cpu", device):
        moved = copy.deepcopy(model).to(where)
        leaf = x.clone().to(where).requires_grad_()
        out = moved(leaf)
        states = out[1] if isinstance(out, tuple) and isinstance(out[1], tuple) else out if isinstance(out, tuple) else (out,)
        first = out[0] if isinstance(out, tuple) else out
        ((first * first).sum() + sum(state.sum() for state in states)).backward()
        results.append([first.detach().cpu(), leaf.grad.cpu(), *(p.grad.cpu() for p in moved.parameters())])
    assert torch.opencl.fallbacks() == {}
    for expected, got in zip(*results):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "constant"])
@pytest.mark.parametrize("padding, size", [((2, 3), (4, 2, 6)), ((3, 0), (2, 4)), ((1, 2, 3, 4), (2, 3, 5, 6)), ((0, 5, 4, 1), (3, 6, 7)), ((-1, 2, 1, -2), (2, 3, 5, 6))])
def test_padding(mode, padding, size, device):
    if mode == "circular" and min(padding) < 0:
        pytest.skip("PyTorch has no circular padding that cuts")
    torch.opencl.reset_fallbacks()
    assert_same(lambda x: F.pad(x, padding, mode), device, randn(*size))
    assert_same(lambda x: F.pad(x, padding, mode), device, randn(*size).double(), tolerance=1e-12)
    assert torch.opencl.fallbacks() == {}


def test_padding_that_is_wrong_is_an_error(device):
    with pytest.raises(RuntimeError, match="Padding size should be less"):
        F.pad(randn(2, 3, 4).to(device), (4, 0), "reflect")
    with pytest.raises(RuntimeError):
        F.pad(randn(2, 3, 4).to(device), (-3, -2), "replicate")


@pytest.mark.parametrize("options", [
    dict(mode="nearest"), dict(mode="nearest-exact"), dict(mode="bilinear"), dict(mode="bilinear", align_corners=True),
    dict(mode="bicubic"), dict(mode="bicubic", align_corners=True)])
@pytest.mark.parametrize("size", [dict(scale_factor=2), dict(scale_factor=(0.4, 3.5)), dict(size=(7, 3)), dict(size=(1, 20)),
                                  dict(scale_factor=1.7, recompute_scale_factor=True)])
def test_interpolation(options, size, device):
    torch.opencl.reset_fallbacks()
    assert_same(lambda x: F.interpolate(x, **size, **options), device, randn(2, 3, 6, 5))
    assert_same(lambda x: F.interpolate(x, **size, **options), device, randn(2, 3, 6, 5).double(), tolerance=1e-6)
    assert_same(lambda x: F.interpolate(x.to(memory_format=torch.channels_last), **size, **options), device, randn(2, 3, 6, 5))
    assert torch.opencl.fallbacks() == {}


@pytest.mark.parametrize("loss", ["huber_loss", "logsigmoid", "prelu", "pairwise_distance", "flip"])
def test_operators_of_ordinary_models_stay_on_the_device(loss, device):
    functions = {"huber_loss": lambda a, b: F.huber_loss(a, b, delta=0.5), "logsigmoid": lambda a, b: F.logsigmoid(30 * a) * b,
                 "prelu": lambda a, b: F.prelu(a, b[0, :3]), "pairwise_distance": lambda a, b: F.pairwise_distance(a, b, 3),
                 "flip": lambda a, b: a.flip(0, -1) * b}
    a, b = randn(4, 3), randn(4, 3) + 0.1
    torch.opencl.reset_fallbacks()
    assert_same(functions[loss], device, a, b)
    assert torch.opencl.fallbacks() == {}


def test_scaling_of_gradients(device):
    """torch.amp.GradScaler: the same scales and weights as on the CPU, also after a step whose gradients are not finite."""
    torch.opencl.reset_fallbacks()
    results = []
    for where in ("cpu", device):
        weight = randn(4, 3).to(where).requires_grad_()
        optimizer = torch.optim.SGD([weight], lr=0.1)
        scaler = torch.amp.GradScaler(where, init_scale=8.0, growth_interval=2)
        scales = []
        for step in range(6):
            optimizer.zero_grad()
            scaler.scale((weight ** 2).sum() * (float("inf") if step == 3 else 1)).backward()
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        results.append((scales, weight.detach().cpu()))
    assert results[0][0] == results[1][0] == [8, 16, 16, 8, 8, 16]
    torch.testing.assert_close(results[1][1], results[0][1])
    assert torch.opencl.fallbacks() == {}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("norm", ["layer", "batch", "batch of few channels"])
def test_statistics_of_half_precision_are_not_rounded_to_it(norm, dtype, device):
    shape = (8, 2 if "few" in norm else 40, 10)
    x, weight, bias = (3 * randn(*shape) + 20).to(dtype), randn(shape[1]).to(dtype), randn(shape[1]).to(dtype)

    def results(x, weight, bias):
        if norm == "layer":
            return torch.native_layer_norm(x.transpose(1, 2), weight.shape, weight, bias, 1e-5)
        return torch.native_batch_norm(x, weight, bias, None, None, True, 0.1, 1e-5)

    # float32, as on CUDA. The CPU rounds mean and 1 / deviation to the type of x.
    on_cpu, exact = results(x, weight, bias), results(x.double(), weight.double(), bias.double())
    got = [result.cpu() for result in results(x.to(device), weight.to(device), bias.to(device))]
    assert [result.dtype for result in got] == [dtype, torch.float32, torch.float32]
    for mine, theirs, true in zip(got, on_cpu, exact):
        assert (mine - true).abs().max() <= 1.001 * (theirs - true).abs().max()
    for mine, true in zip(got[1:], exact[1:]):
        torch.testing.assert_close(mine.double(), true, rtol=1e-5, atol=1e-6)


def test_batch_norms_of_exported_programs(device):
    """torch.export's decompositions call these forms; they ran on the CPU."""
    norm, forms = torch.ops.aten, []
    for where in ("cpu", device):
        torch.opencl.reset_fallbacks()
        x, weight, bias, mean, var = randn(4, 3, 5).to(where), *((scale * randn(3).abs() + 0.1).to(where) for scale in (1, 2, 3, 4))
        results = [*norm._native_batch_norm_legit(x, weight, bias, mean, var, True, 0.1, 1e-5), *norm._native_batch_norm_legit.no_stats(x, weight, bias, True, 0.1, 1e-5),
                   norm._native_batch_norm_legit(x, weight, bias, mean, var, False, 0.1, 1e-5)[0], mean, var]
        forms.append([result.cpu() for result in results])
        assert torch.opencl.fallbacks() == {}
    torch.testing.assert_close(forms[1], forms[0], rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match="running_mean"):
        torch.native_batch_norm(x, weight, bias, None, None, False, 0.1, 1e-5)


def test_the_gradient_of_attention_with_dropout(device):
    if not torch.opencl.get_device_properties(device).has_fp64:
        pytest.skip("no double precision")
    x, weights, out = (randn(*shape).double().to(device).requires_grad_() for shape in ((5, 2, 4), (12, 4), (4, 4)))

    def attend(x, weights, out):
        # The same elements are dropped in each call, so that differences of results are those of one function.
        torch.manual_seed(5)
        return F.multi_head_attention_forward(x, x, x, 4, 2, weights, None, None, None, False, 0.5, out, None)[0]

    assert (attend(x, weights, out) == attend(x, weights, out)).all()
    assert torch.autograd.gradcheck(attend, (x, weights, out), fast_mode=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("masked", [False, True])
def test_scores_of_attention_are_not_rounded_to_half_precision(dtype, masked, device):
    q, k, v = ((3 * randn(2, 3, 40, size)).to(dtype) for size in (32, 33, 24))
    k, bias = k[..., :32], randn(40, 40).to(dtype) if masked else None

    def results(where, dtype):
        inputs = [x.detach().to(where, dtype).requires_grad_() for x in (q, k, v)]
        out = F.scaled_dot_product_attention(*inputs, attn_mask=None if bias is None else bias.to(where, dtype), is_causal=not masked)
        return [x.detach().cpu().double() for x in (out, *torch.autograd.grad(out, inputs, torch.ones_like(out)))]

    # Rounded, scores of 30 would change their exponentials by a hundredth: ten times the error of the CPU.
    for mine, theirs, true in zip(results(device, dtype), results("cpu", dtype), results("cpu", torch.float64)):
        assert (mine - true).abs().max() <= 2 * (theirs - true).abs().max() + torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("norm", ["layer", "group"])
def test_norms_whose_parameters_are_more_exact_than_their_input(norm, dtype, device):
    x, weight, bias, seed = randn(6, 12).to(dtype), randn(12), randn(13)[:12], randn(6, 12).to(dtype)

    def results(where):
        inputs = [value.detach().to(where).requires_grad_() for value in (x, weight, bias)]
        out = F.layer_norm(inputs[0], (12,), *inputs[1:]) if norm == "layer" else F.group_norm(inputs[0], 3, *inputs[1:])
        return [out.detach().cpu(), *(g.cpu() for g in torch.autograd.grad(out, inputs, seed.to(where)))]

    for mine, theirs in zip(results(device), results("cpu")):
        torch.testing.assert_close(mine, theirs, rtol=2e-2, atol=2e-2)
