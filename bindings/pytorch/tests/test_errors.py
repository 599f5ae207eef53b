"""Bad input: PyTorch's usual exceptions, and nothing lost."""
import gc
import os
import pathlib
import shutil
import subprocess
import sys
import warnings

import pytest
import torch

from conftest import platform_has_statistics


@pytest.fixture(autouse=True)
def nothing_is_lost(device):
    gc.collect()
    before = torch.opencl.memory_allocated(device)
    yield
    gc.collect()
    assert torch.opencl.memory_allocated(device) == before


def test_tensors_of_the_cpu_are_not_mixed_in(device):
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2, device=device) + torch.ones(2)
    x = torch.ones(2, 2, device=device)
    for function in (lambda: x @ torch.ones(2, 2), lambda: torch.nn.functional.linear(x, torch.ones(2, 2)),
                     lambda: x.gather(0, torch.zeros(2, 2, dtype=torch.long)), lambda: x.index_select(0, torch.tensor([0])),
                     lambda: torch.nn.functional.layer_norm(x, (2,), torch.ones(2)),
                     lambda: torch.nn.functional.nll_loss(x, torch.tensor([0, 1]))):
        with pytest.raises(RuntimeError, match="same device"):
            function()
    assert (torch.ones(2, device=device) + torch.tensor(1.0)).tolist() == [2, 2]  # numbers are


def test_layouts_that_are_not_there(device):
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.empty(2, 2, layout=torch.sparse_csr, device=device)
    with pytest.raises(RuntimeError, match="pinned"):
        torch.empty(2, device=device, pin_memory=True)


def test_complex_numbers_have_kernels(device):
    z = torch.tensor([1 + 2j, 3 - 1j]).to(device)
    assert z.cpu().tolist() == [1 + 2j, 3 - 1j]
    assert torch.view_as_real(z).tolist() == [[1, 2], [3, -1]]
    torch.opencl.reset_fallbacks()
    w = (z + z) * z.conj() / (z - 1j) + 2 * z.abs()
    w[0] = w.sum() + z.exp().mean()
    assert (z == z).all() and (z[:, None] @ z[None]).shape == (2, 2) and w.isnan().sum() == 0
    u, v = z[:1].conj(), torch.tensor([2 - 3j]).to(device)
    assert torch.dot(u, v).item() == (1 - 2j) * (2 - 3j) and torch.vdot(u, v).item() == (1 + 2j) * (2 - 3j)
    assert torch.vdot(u, v.conj()).item() == (1 + 2j) * (2 + 3j) and torch.vdot(z[:0], z[:0]).item() == 0
    assert torch.opencl.fallbacks() == {}
    z.sin()
    assert set(torch.opencl.fallbacks()) == {"aten::sin.out"}


def test_shapes_that_do_not_fit(device):
    with pytest.raises(RuntimeError, match="size of tensor a"):
        torch.ones(3, device=device) + torch.ones(4, device=device)
    with pytest.raises(RuntimeError, match="mat1 and mat2|shapes cannot be multiplied"):
        torch.ones(2, 3, device=device) @ torch.ones(2, 3, device=device)
    with pytest.raises(IndexError):
        torch.ones(3, device=device).sum(2)


def test_an_index_outside_does_not_touch_other_memory(device):
    x = torch.ones(4, device=device)
    neighbour = torch.full((4,), 7.0, device=device)
    assert x.index_select(0, torch.tensor([0, 100], device=device)).tolist() == [1, 0]
    x.scatter_(0, torch.tensor([1000], device=device), 5.0)
    x.index_put_((torch.tensor([-9], device=device),), torch.tensor(3.0, device=device))
    assert x.tolist() == [1] * 4 and neighbour.tolist() == [7] * 4
    loss = torch.nn.functional.nll_loss(torch.zeros(1, 3, device=device), torch.tensor([9], device=device))
    assert loss.isnan().item()


def test_an_operator_without_a_kernel_warns_once_and_is_counted(device):
    torch.opencl.reset_fallbacks()
    x = torch.eye(3, device=device) * 2
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert torch.linalg.det(x).item() == 8
        torch.linalg.det(x)
    assert sum("aten::_linalg_det" in str(warning.message) for warning in seen) <= 1
    assert torch.opencl.fallbacks()["aten::_linalg_det.result"] == 2


def test_a_tensor_is_usable_after_an_error(device):
    x = torch.ones(1000, device=device)
    for _ in range(3):
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(1 << 50, dtype=torch.uint8, device=device)
        x = x + 1
    assert x.sum().item() == 4000


def run_alone(code, **environment):
    """What code prints in a process of its own, which must end well."""
    run = subprocess.run([sys.executable, "-c", "import torch, torch_opencl\n" + code], capture_output=True, text=True, timeout=300,
                         env={**os.environ, **environment})
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("dtype", [torch.complex64, torch.float8_e4m3fn, torch.uint16])
def test_types_with_few_kernels(dtype, device):
    x = torch.zeros(8, dtype=torch.uint8).view(dtype).to(device)
    for function in (lambda: x + x, lambda: x.sum(), lambda: x.view(-1, 1) @ x.view(1, -1)):
        try:
            function()  # some run on the CPU
        except (RuntimeError, NotImplementedError) as error:
            assert str(error)
    assert (x * x).cpu().view(torch.uint8).sum() == 0
    assert x.cpu().view(torch.uint8).sum() == 0


def test_quantized_tensors_are_refused(device):
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.quantize_per_tensor(torch.ones(4, device=device), 0.1, 0, torch.qint8) + 1


@pytest.mark.parametrize("index", [99, -5])
def test_devices_that_are_not_there(index, device):
    x = torch.ones(2, device=device)
    name = f"opencl:{index}"
    for function in (lambda: x.to(name), lambda: torch.ones(2).to(name), lambda: torch.empty(2, device=name),
                     lambda: torch.Generator(device=name), lambda: torch.Stream(device=name),
                     lambda: torch.opencl.memory_allocated(index), lambda: torch.opencl.synchronize(index),
                     lambda: torch.opencl.get_device_properties(index), lambda: torch.opencl.memory_snapshot(index),
                     lambda: torch.opencl.current_stream(index)):
        with pytest.raises((RuntimeError, ValueError), match="(?i)device"):
            function()
    assert (x + 1).tolist() == [2, 2]


def test_an_index_that_does_not_fit_in_a_byte():
    """PyTorch keeps it in one: it is negative then."""
    with pytest.raises(RuntimeError, match="invalid device index"):
        torch.empty(2, device="opencl:128")


def test_an_index_of_floats(device):
    x = torch.ones(3, 4, device=device)
    for program in (lambda: x[torch.ones(2, device=device)], lambda: x.index_put_((torch.ones(2, device=device),), torch.ones(4, device=device))):
        with pytest.raises(IndexError, match="must be long, int, byte or bool"):
            program()


def test_tensors_of_other_backends_are_not_mixed_in(device):
    x, other = torch.ones(2, 2, device=device), torch.empty(2, 2, device="meta")
    with pytest.raises(RuntimeError, match="meta"):
        torch.cat([x, other])
    with pytest.raises((RuntimeError, AssertionError), match="(?i)cuda|nvidia"):
        x.to("cuda:77")
    assert x.sum().item() == 4


def test_a_platform_without_addresses(tmp_path):
    """The message names the extensions that a device needs."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    source, library = pathlib.Path(__file__).with_name("platform_without_addresses.c"), tmp_path / "platform.so"
    headers = pathlib.Path(__file__).resolve().parents[3] / "include"
    subprocess.run([compiler, "-shared", "-fPIC", "-DCL_TARGET_OPENCL_VERSION=300", f"-I{headers}", "-o", library, source], check=True)
    (tmp_path / "test.icd").write_text(f"{library}\n")
    printed = run_alone("""
assert torch.opencl.device_count() == 0 and not torch.opencl.is_available()
for function in (lambda: torch.ones(3, device="opencl"), lambda: torch.ones(3).to("opencl:0"), lambda: torch.ones(3).opencl()):
    try:
        function()
    except RuntimeError as error:
        print(error)
print((torch.ones(3) * 2).tolist())
""", OCL_ICD_VENDORS=str(tmp_path), OPENCL_VENDOR_PATH=str(tmp_path), TORCH_OPENCL_ADDRESSES="unified")
    assert printed.count("no OpenCL device has cl_intel_unified_shared_memory or cl_ext_buffer_device_address") == 3, printed
    assert "[2.0, 2.0, 2.0]" in printed


def test_a_kernel_that_does_not_compile():
    if not platform_has_statistics():
        pytest.skip("a setting of Polder spoils the compilation")
    printed = run_alone("""
x = torch.arange(4.0).to("opencl")
for attempt in range(2):
    try:
        x + 1
    except RuntimeError as error:
        assert type(error) is RuntimeError and "was not compiled: CL_BUILD_PROGRAM_FAILURE" in str(error), error
        print("failed")
assert x.cpu().tolist() == [0, 1, 2, 3]  # nothing is lost
before = torch.opencl.memory_allocated()
del x
print(before, torch.opencl.memory_allocated())
""", POCL_EXTRA_BUILD_FLAGS="-DT=(", POCL_KERNEL_CACHE="0")
    assert printed == "failed\nfailed\n16 0\n"


def test_a_kernel_that_cannot_run():
    """Its three tensors do not fit in the device's memory together: the error is at the call, and the tensors are as before."""
    if not platform_has_statistics():
        pytest.skip("a setting of Polder makes the memory small")
    printed = run_alone("""
import gc
x, y = torch.full((2 << 20,), 3.0, device="opencl"), torch.full((2 << 20,), 4.0, device="opencl")
before = torch.opencl.memory_allocated()
for attempt in range(2):
    try:
        x + y
    except torch.OutOfMemoryError as error:
        print("CL_MEM_OBJECT_ALLOCATION_FAILURE" in str(error))
x += 1
print(x[::1 << 20].tolist(), y[::1 << 20].tolist())
gc.collect()
print(torch.opencl.memory_allocated() - before)
""", POCL_DEVICES="discrete", POCL_DISCRETE0_PARAMETERS="memory=16M", TORCH_OPENCL_ADDRESSES="none")
    assert printed == "True\nTrue\n[4.0, 4.0] [4.0, 4.0]\n0\n"


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.uint16])
def test_types_without_kernels_are_copied(dtype, device):
    """Strided copies on the device and from and to the host: they called each other without an end."""
    if dtype.is_complex:
        x = torch.view_as_complex(torch.arange(24, dtype=dtype.to_real()).reshape(3, 4, 2) - 9)
    else:
        x = torch.arange(12 * dtype.itemsize, dtype=torch.uint8).view(dtype).reshape(3, 4)

    def same(got, expected):
        assert got.dtype == dtype
        return torch.equal(got.cpu().contiguous().view(torch.uint8), expected.contiguous().view(torch.uint8))

    y = x.to(device)
    assert same(y.t(), x.t()) and same(y.t().contiguous(), x.t()) and same(y[:, 1:3].clone(), x[:, 1:3])
    z = torch.zeros(4, 3, dtype=dtype, device=device)
    z.t()[1:] = x[1:]
    z[:, 0] = y[0]
    assert same(z, x.t())


def test_views_that_are_conjugated_or_negated_are_copied(device):
    x = torch.tensor([[1 + 2j, 3 - 4j], [-5j, 6]])
    y = x.to(device)
    for view in (lambda z: z.conj(), lambda z: z.conj().t(), lambda z: torch.imag(z.conj()), lambda z: torch.imag(z.conj()).t(),
                 lambda z: torch.imag(z.conj()).clone(), lambda z: z.conj().t().contiguous(), lambda z: z.conj().to(torch.complex128)):
        assert torch.equal(view(y).cpu().resolve_conj().resolve_neg(), view(x).resolve_conj().resolve_neg())
    target = torch.zeros(2, 2, dtype=torch.complex64, device=device)
    target.conj().copy_(y)
    torch.imag(target.conj())[0].fill_(7)
    expected = torch.zeros(2, 2, dtype=torch.complex64)
    expected.conj().copy_(x)
    torch.imag(expected.conj())[0].fill_(7)
    assert torch.equal(target.cpu(), expected)


@pytest.mark.parametrize("operator", [
    torch.mm, torch.matmul, lambda a, b: torch.bmm(a[None], b[None]), lambda a, b: torch.mv(a, b[:, 0]),
    lambda a, b: torch.addmm(a[:, :1], a, b), lambda a, b: torch.addmv(a[:, 0], a, b[:, 0]), lambda a, b: torch.nn.functional.linear(a, b.t()),
    lambda a, b: torch.baddbmm(a[None, :, :1], a[None], b[None]), lambda a, b: torch.addbmm(a[:, :1], a[None], b[None]),
    lambda a, b: torch.einsum("ij,jk->ik", a, b), lambda a, b: torch.nn.functional.conv1d(a[None], b.t()[..., None])])
@pytest.mark.parametrize("types", [(torch.float32, torch.float16), (torch.float16, torch.float32), (torch.float64, torch.float32),
                                   (torch.int64, torch.float32)])
def test_factors_of_different_types(operator, types, device):
    # A model in half precision whose input is not, and the other way round.
    a, b = torch.ones(4, 4, dtype=types[0]), torch.ones(4, 4, dtype=types[1])
    for where in ("cpu", device):
        with pytest.raises(RuntimeError, match="dtype|scalar type|should be the same|type of input"):
            operator(a.to(where), b.to(where))


@pytest.mark.parametrize("operator,shapes", [
    (torch.mm, [(3, 4), (5, 6), (3, 6)]), (torch.mm, [(2, 3, 4), (4, 6), (3, 6)]), (torch.bmm, [(2, 3, 4), (2, 5, 6), (2, 3, 6)]),
    (torch.bmm, [(2, 3, 4), (3, 4, 6), (2, 3, 6)]), (torch.addmm, [(6,), (3, 4), (5, 6), (3, 6)]), (torch.addmm, [(7,), (3, 4), (4, 6), (3, 6)]),
    (torch.baddbmm, [(2, 3, 6), (2, 3, 4), (2, 5, 6), (2, 3, 6)]), (torch.addmv, [(3,), (3, 4), (5,), (3,)])])
def test_factors_that_do_not_fit_with_a_result_given(operator, shapes, device):
    for where in ("cpu", device):
        *inputs, out = (torch.ones(shape, device=where) for shape in shapes)
        with pytest.raises(RuntimeError):
            operator(*inputs, out=out)


def test_results_of_another_type(device):
    x, place = torch.ones(4, 4, device=device), torch.tensor([0, 1], device=device)
    for dtype in (torch.float16, torch.int64):
        with pytest.raises(RuntimeError, match="dtype"):
            torch.mm(x, x, out=torch.empty(4, 4, device=device, dtype=dtype))
        with pytest.raises(RuntimeError, match="same scalar type"):
            torch.index_select(x, 0, place, out=torch.empty(2, 4, device=device, dtype=dtype))
        with pytest.raises(RuntimeError, match="dtypes match"):
            x.clone().index_put_((place,), torch.ones(2, 4, device=device, dtype=dtype))
        y = x.clone()
        y[y > 0] = torch.tensor(2, dtype=dtype)  # a number, which PyTorch converts
        assert y.eq(2).all()
    with pytest.raises(RuntimeError, match="scalar type"):
        torch.nn.functional.cross_entropy(x, torch.zeros(4, dtype=torch.long, device=device), weight=torch.ones(4, device=device).half())
    with pytest.raises(NotImplementedError, match="softmax"):
        torch.softmax(x.long(), 1)


def test_an_attention_whose_sizes_do_not_fit(device):
    q = torch.ones(1, 2, 4, 8, device=device)
    for key, value in ((torch.ones(1, 2, 4, 9), torch.ones(1, 2, 4, 8)), (torch.ones(1, 2, 5, 8), torch.ones(1, 2, 4, 8))):
        with pytest.raises(RuntimeError):
            torch.nn.functional.scaled_dot_product_attention(q, key.to(device), value.to(device))


def test_an_input_that_was_not_moved(device):
    image, weight = torch.ones(1, 2, 5, 5), torch.ones(3, 2, 3, 3, device=device)
    for program in (lambda: torch.nn.functional.conv2d(image, weight), lambda: torch.cat([weight, torch.ones(3, 2, 3, 3)]),
                    lambda: torch.mm(image[0, 0], torch.ones(5, 5, device=device)),
                    lambda: weight.masked_select(torch.ones(3, 3) > 0),
                    lambda: torch.topk(weight, 1, out=(torch.ones(3, 2, 3, 1), torch.ones(3, 2, 3, 1, dtype=torch.long))),
                    lambda: torch.mm(torch.ones(5, 5, device=device), image[0, 0], out=image[0, 1])):
        with pytest.raises(RuntimeError, match="same device"):
            program()


def wrong_types(device):
    """Calls whose result or one of whose inputs has another type than the kernel reads, or too few elements."""
    def tensor(*shape, dtype=torch.float32):
        return torch.ones(shape, dtype=dtype, device=device)

    half = torch.float16
    x, places = tensor(3, 4), tensor(3, 4, dtype=torch.long) * 0
    image, aten = tensor(1, 1, 4, 4), torch.ops.aten
    one = torch.ones((), device=device)
    options = dict(lr=0.1, beta1=0.9, beta2=0.9, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)
    return {
        "gather": lambda: torch.gather(x, 0, places, out=tensor(3, 4, dtype=half)),
        "scatter": lambda: torch.scatter(x, 0, places, x, out=tensor(3, 4, dtype=half)),
        "scatter's source": lambda: torch.scatter_add(x, 0, places, tensor(3, 4, dtype=half), out=tensor(3, 4)),
        "index_add": lambda: torch.index_add(x, 0, places[:, 0], x, out=tensor(3, 4, dtype=half)),
        "max": lambda: torch.max(x, 1, out=(tensor(3, dtype=half), places[:, 0].clone())),
        "max's places": lambda: torch.max(x, 1, out=(tensor(3), tensor(3, dtype=torch.int32))),
        "argmax": lambda: torch.argmax(x, 1, out=tensor(3, dtype=torch.int32)),
        "tril": lambda: torch.tril(x, out=tensor(3, 4, dtype=half)),
        "softmax's gradient": lambda: torch._softmax_backward_data(x, x.half(), 1, torch.float32),
        "layer_norm's gradient": lambda: aten.native_layer_norm_backward(
            x.half(), x, [4], tensor(3, 1), tensor(3, 1), None, None, [True, False, False]),
        "max_pool": lambda: aten.max_pool2d_with_indices(
            image, [2, 2], out=tensor(1, 1, 2, 2, dtype=half), indices=tensor(1, 1, 2, 2, dtype=torch.long)),
        "max_pool's places": lambda: aten.max_pool2d_with_indices_backward(
            tensor(1, 1, 2, 2), image, [2, 2], [2, 2], [0, 0], [1, 1], False, tensor(1, 1, 1, 1, dtype=torch.long)),
        "avg_pool": lambda: aten.avg_pool2d(image, [2, 2], out=tensor(1, 1, 2, 2, dtype=half)),
        "upsampling": lambda: aten.upsample_nearest2d(image, [8, 8], out=tensor(1, 1, 8, 8, dtype=half)),
        "targets": lambda: torch.nn.functional.cross_entropy(x, places[:, 0].int()),
        "biases of a cell": lambda: torch.lstm_cell(x, (x, x), tensor(16, 4), tensor(16, 4), tensor(4), tensor(4)),
        "targets of images": lambda: torch.nn.functional.nll_loss(tensor(2, 4, 3, 3), tensor(2, 3, 1, dtype=torch.long)),
        "scales of a bag": lambda: torch.nn.functional.embedding_bag(
            places[:2, :2], x, per_sample_weights=tensor(2, 2, dtype=half), mode="sum"),
        "indices of a bag": lambda: torch.nn.functional.embedding_bag(tensor(2), x, places[0, :1]),
        "a gradient of Adam": lambda: torch._fused_adam_([x], [x.half()], [x], [x], [], [one], **options),
        "a state of Adam": lambda: torch._fused_adam_([x], [x], [x.double()], [x], [], [one], **options),
        "a gradient of SGD": lambda: torch._fused_sgd_([x], [x.half()], [x], lr=0.1, momentum=0.9, weight_decay=0.0, dampening=0.0,
                                                       nesterov=False, maximize=False, is_first_step=False),
        "a state of Adam that is too small": lambda: torch._fused_adam_([x], [x], [x[0]], [x], [], [one], **options),
        "random integers": lambda: torch.randn(3, dtype=torch.long, device=device),
        "uniform integers": lambda: tensor(3, dtype=torch.long).uniform_(),
        "a norm of integers": lambda: torch.nn.functional.layer_norm(places, (4,)),
        "a batch norm of integers": lambda: torch.nn.functional.batch_norm(places, None, None, training=True),
    }


@pytest.mark.parametrize("name", wrong_types("meta"))
def test_memory_is_not_taken_for_another_type(name, device):
    with pytest.raises((RuntimeError, NotImplementedError)) as caught:
        wrong_types(device)[name]()
    assert "not compiled" not in str(caught.value)
