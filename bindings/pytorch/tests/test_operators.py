"""PyTorch's own database of operators (OpInfo): results and gradients against the CPU, for the operators that have kernels.

TORCH_OPENCL_LONG_TESTS=1 runs every sample and every type; without it a few of each, so that the tests take minutes.
"""
import os
import warnings

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from conftest import DEVICES

LONG = os.environ.get("TORCH_OPENCL_LONG_TESTS") == "1"
SAMPLES_MAX = 10000 if LONG else 5
GRADIENTS_MAX = 10000 if LONG else 2
TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool)
SHORT_TYPES = (torch.float32, torch.float16, torch.int64, torch.bool)
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 2e-4, torch.float64: 1e-7}

# Operators that never run on the CPU for these types.
NATIVE = """
abs acos acosh add addbmm addcdiv addcmul addmm addmv all amax amin any arange argmax argmin argsort asin asinh atan atan2 atanh
baddbmm bitwise_and bitwise_not bitwise_or bitwise_xor bmm broadcast_to cat ceil chunk clamp clamp_max clamp_min clone
contiguous copysign cos cosh cumprod cumsum diagonal div dot empty_like eq equal erf erfc erfinv exp exp2 expand expand_as expm1 eye
fill flatten flip floor floor_divide fmax fmin fmod frac full_like gather ge gt hypot index_add index_select isfinite isinf isnan isneginf isposinf
le lerp lgamma linspace log log10 log1p log2 log_softmax logaddexp logical_and logical_not logical_or logical_xor logsumexp lt
masked_fill masked_select matmul max mean min maximum minimum mm movedim mul mv narrow ne neg new_full nonzero
nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d
nn.functional.adaptive_max_pool1d nn.functional.adaptive_max_pool2d nn.functional.adaptive_max_pool3d
nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.batch_norm
nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d nn.functional.conv_transpose1d
nn.functional.conv_transpose2d nn.functional.conv_transpose3d nn.functional.cross_entropy
nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.max_pool3d nn.functional.pad
nn.functional.binary_cross_entropy nn.functional.elu nn.functional.embedding nn.functional.gelu nn.functional.glu nn.functional.huber_loss
nn.functional.interpolate nn.functional.logsigmoid nn.functional.prelu nn.functional.upsample_bilinear nn.functional.upsample_nearest nn.functional.group_norm nn.functional.hardsigmoid
nn.functional.hardswish nn.functional.hardtanh nn.functional.layer_norm nn.functional.leaky_relu nn.functional.linear
nn.functional.mish nn.functional.mse_loss nn.functional.nll_loss nn.functional.relu nn.functional.relu6 nn.functional.silu
nn.functional.smooth_l1_loss nn.functional.softplus nn.functional.softsign nn.functional.tanhshrink nn.functional.threshold
norm ones_like outer permute pow prod ravel reciprocal remainder repeat reshape resize_ roll round rsqrt scatter scatter_add select
sgn sigmoid sign signbit sin sinc sinh slice softmax sort split sqrt square squeeze stack std sub sum swapaxes t tan tanh topk transpose
tril triu trunc unbind unflatten unsqueeze var var_mean vdot view where xlogy zero_ zeros_like
aminmax bitwise_left_shift bitwise_right_shift bincount count_nonzero heaviside index_copy index_fill index_reduce logaddexp2
logit masked_scatter nansum nn.functional.fold nn.functional.hardshrink
nn.functional.softshrink nn.functional.unfold put scatter_reduce std_mean take trace
bucketize cdist cummax cummin digamma gcd histc i0 igamma igammac lcm logcumsumexp logspace median mode mvlgamma nanmedian
angle cross frexp grid_sampler_2d grid_sampler_3d linalg.cross nn.functional.channel_shuffle nn.functional.grid_sample nn.functional.pixel_shuffle
nn.functional.pixel_unshuffle renorm rsub unfold unfold_copy
nn.functional.ctc_loss nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss nn.functional.pdist polygamma searchsorted
special.entr special.erfcx special.i0e special.i1 special.i1e special.log_ndtr special.modified_bessel_i0 special.modified_bessel_i1 special.ndtri
special.polygamma special.spherical_bessel_j0 special.xlog1py special.zeta tril_indices triu_indices unique unique_consecutive
""".split()

# Operators that some samples reach, and that run on the CPU.
MAY_RUN_ON_CPU = {"aten::embedding_renorm_", "aten::_linalg_svd.U"}

OPERATORS = [op for op in op_db if op.name in NATIVE]


def is_dense(tensor):
    """Whether the elements fill a stretch of memory, each its own place."""
    reach = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return reach == tensor.numel() and 0 not in tensor.stride()


def is_part(tensor):
    """Whether the storage has more than the tensor's elements."""
    return tensor.numel() * tensor.element_size() < tensor.untyped_storage().nbytes() and not tensor.is_conj() and not tensor.is_neg()


def moved(value, device):
    if isinstance(value, torch.Tensor):
        copy = value.detach().to(device)
        if value.layout == torch.strided and not value.is_quantized and is_part(value):
            # A sample may read around its view: torch.as_strided takes places of the storage.
            whole = torch.empty(0, dtype=value.dtype).set_(value.detach().untyped_storage())
            copy = whole.to(device).as_strided(value.shape, value.stride(), value.storage_offset())
        elif not value.is_contiguous() and value.dim() > 0 and value.numel() > 1:
            # The same strides there.
            base = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)
            copy = base.copy_(copy) if is_dense(value) else copy
        return copy.requires_grad_(value.requires_grad)
    if isinstance(value, torch.device) or (isinstance(value, str) and value == "cpu"):
        return torch.device(device)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        parts = [moved(part, device) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {name: (device if name == "device" else moved(part, device)) for name, part in value.items()}
    return value


def flat(result):
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [tensor for part in result for tensor in flat(part)]
    return []


def call(op, sample, device):
    return flat(op(moved(sample.input, device), *moved(sample.args, device), **moved(sample.kwargs, device)))


def tensors_of(sample):
    found = []

    def visit(value):
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            for part in value:
                visit(part)
        elif isinstance(value, dict):
            for part in value.values():
                visit(part)

    visit(sample)
    return found


def close(got, expected, dtype):
    got = got.cpu()
    assert got.dtype == expected.dtype and got.shape == expected.shape
    tolerance = TOLERANCE.get(expected.dtype if expected.is_floating_point() else dtype, 0)
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def samples_of(op, dtype, count, requires_grad=False):
    torch.manual_seed(1)
    samples = op.sample_inputs("cpu", dtype, requires_grad=requires_grad)
    kept = []
    for sample in samples:
        if any(tensor.is_complex() or tensor.is_sparse for tensor in tensors_of((sample.input, sample.args, sample.kwargs))):
            continue
        kept.append(sample)
        if len(kept) >= 4 * count:
            break
    # Samples of one operator begin with the plainest ones: take them evenly.
    step = max(1, len(kept) // count)
    return kept[::step][:count]


RANDOM = {"empty_like", "resize_"}  # results without values
# On the CPU the order of equal elements is not defined; and it computes these in half precision.
TIES = {"sort", "topk", "argsort", "kthvalue", "mode"}
ROUNDED_ON_CPU = {"addbmm", "histc", "grid_sampler_2d", "grid_sampler_3d", "nn.functional.grid_sample"}
# The gradient of ctc_loss is that of a function of log_softmax: gradcheck, which changes one probability alone, refuses it on the CPU too.
WITHOUT_GRADCHECK = {*RANDOM, "nn.functional.ctc_loss"}


def is_comparable(op, sample, result, dtype):
    if op.name in RANDOM or (op.name in ROUNDED_ON_CPU and dtype in (torch.float16, torch.bfloat16)):
        return False
    if dtype in (torch.float16, torch.bfloat16) and (op.variant_test_name in ("bicubic", "trilinear") or "conv_transpose" in op.name):
        return False  # the CPU rounds parts of sums to half precision; test_half_precision_is_rounded_once
    is_stable = sample.kwargs.get("stable")
    return op.name not in TIES or is_stable or result.dtype != torch.int64 or dtype == torch.float32


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.formatted_name)
def test_results_are_those_of_the_cpu(op):
    device = DEVICES[0]
    for dtype in [known for known in (TYPES if LONG else SHORT_TYPES) if known in op.dtypes]:
        for sample in samples_of(op, dtype, SAMPLES_MAX):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    expected = call(op, sample, "cpu")
                except (RuntimeError, NotImplementedError):
                    continue  # not on the CPU either
                torch.opencl.reset_fallbacks()
                got = call(op, sample, device)
                ran_on_cpu = set(torch.opencl.fallbacks()) - MAY_RUN_ON_CPU
            assert not ran_on_cpu, (dtype, sample, ran_on_cpu)
            assert len(got) == len(expected)
            for a, b in zip(got, expected):
                if is_comparable(op, sample, b, dtype):
                    close(a, b, dtype)


def with_leaves(op, sample, where):
    """The function of its leaves that a sample is, and the leaves: tensors on the device `where`."""
    inputs = moved((sample.input, sample.args, sample.kwargs), where)
    leaves = [tensor for tensor in tensors_of(inputs) if tensor.requires_grad]

    def function(*given):
        rest = iter(given)

        def replaced(value):
            if isinstance(value, torch.Tensor):
                return next(rest).clone() if value.requires_grad else value  # operators may change their arguments
            if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
                parts = [replaced(part) for part in value]
                return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
            if isinstance(value, dict):
                return {name: replaced(part) for name, part in value.items()}
            return value

        first, args, kwargs = replaced(inputs)
        results = op(first, *args, **kwargs)
        if sample.output_process_fn_grad is not None:
            results = sample.output_process_fn_grad(results)
        return tuple(result for result in flat(results) if result.requires_grad)

    return function, leaves


def gradients_of(op, sample, where):
    """Gradients of the leaves for the same seeds on each device; None where there are none."""
    function, leaves = with_leaves(op, sample, where)
    results = function(*leaves) if leaves else ()
    if not results:
        return None
    seeds = []
    for result in results:
        torch.manual_seed(2)
        seeds.append(torch.randn(result.shape, dtype=result.dtype).to(where))
    return torch.autograd.grad(results, leaves, seeds, allow_unused=True)


def gradcheck(op, sample, where):
    """Whether there is something to check. Throws GradcheckError when gradients differ from differences of results."""
    function, leaves = with_leaves(op, sample, where)
    if not leaves or not function(*leaves):
        return False
    return torch.autograd.gradcheck(function, leaves, fast_mode=True, check_batched_grad=False, nondet_tol=op.gradcheck_nondet_tol,
                                    check_undefined_grad=False)


@pytest.mark.parametrize("op", [op for op in OPERATORS if op.supports_autograd], ids=lambda op: op.formatted_name)
def test_gradients_are_those_of_the_cpu(op):
    device = DEVICES[-1]
    for sample in samples_of(op, torch.float32, GRADIENTS_MAX, requires_grad=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, got = (gradients_of(op, sample, where) for where in ("cpu", device))
        assert (expected is None) == (got is None)
        for a, b in zip(got or (), expected or ()):
            assert (a is None) == (b is None)
            if a is not None:
                close(a, b, torch.float32)


@pytest.mark.parametrize("op", [op for op in OPERATORS if op.supports_autograd and op.name not in WITHOUT_GRADCHECK and torch.float64 in op.dtypes],
                         ids=lambda op: op.formatted_name)
def test_gradcheck(op):
    device = DEVICES[0]
    if not torch.opencl.get_device_properties(device).has_fp64:
        pytest.skip("no double precision")
    for sample in samples_of(op, torch.float64, GRADIENTS_MAX, requires_grad=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gradcheck(op, sample, device)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64, torch.bool])
def test_a_stable_sort_keeps_the_order_of_equal_elements(dtype, descending, device):
    x = torch.randint(-50, 50, (3, 1000), generator=torch.Generator().manual_seed(1)).to(dtype)
    expected = x.sort(dim=-1, descending=descending, stable=True)
    got = x.to(device).sort(dim=-1, descending=descending, stable=True)
    assert torch.equal(got.values.cpu(), expected.values) and torch.equal(got.indices.cpu(), expected.indices)


def test_ldexp_of_exponents_with_fractions(device):
    x = torch.randn(40, generator=torch.Generator().manual_seed(1))
    exponents = torch.cat([torch.linspace(-6.3, 6.3, 34), torch.tensor([3.0, -2.0, float("nan"), float("inf"), float("-inf"), 1e30])])
    for function in (torch.ldexp, lambda a, b: a.clone().ldexp_(b), lambda a, b: torch.ldexp(a, b.nan_to_num(0, 9, -9).clamp(-99, 99).int())):
        torch.testing.assert_close(function(x.to(device), exponents.to(device)).cpu(), function(x, exponents), equal_nan=True)
