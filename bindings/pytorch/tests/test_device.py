"""Registration, devices, streams, events, random numbers, serialization."""
import concurrent.futures
import importlib.util
import io
import pathlib
import subprocess
import sys
import threading

import pytest
import torch
import torch_opencl

from conftest import platform_has_statistics


def test_a_tensor_of_the_device_is_made_after_importing_torch():
    assert torch.ones(3, device="opencl").tolist() == [1, 1, 1]
    assert torch.opencl.is_available()
    assert torch.accelerator.current_accelerator().type == "opencl"


def test_importing_starts_no_device():
    code = "import torch, torch_opencl; print(torch.accelerator.is_available())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"


def test_a_device_that_is_not_there_is_an_error_at_the_call():
    with pytest.raises(RuntimeError, match="invalid device index"):
        torch.ones(3, device="opencl:99")
    with pytest.raises(RuntimeError, match="invalid device index"):
        torch.opencl.set_device(99)


def test_no_device_serves_without_addresses():
    if not platform_has_statistics():
        pytest.skip("a setting of Polder chooses its devices")
    code = ("import torch, torch_opencl\nassert torch.opencl.device_count() == 0\n"
            "try: torch.ones(3, device='opencl')\nexcept RuntimeError as error: print(error)")
    env = {**__import__("os").environ, "POCL_DEVICES": "none-such"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert "opencl: " in run.stdout, run.stderr


def test_the_current_device_is_where_tensors_are_made(two_devices):
    with torch.opencl.device(1):
        assert torch.empty(2, device="opencl").device.index == 1
    assert torch.empty(2, device="opencl").device.index == 0
    with torch.device("opencl:1"):
        assert torch.empty(2).device == torch.device("opencl:1")


def test_tensors_of_two_devices_are_not_mixed(two_devices):
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2, device=two_devices[0]) + torch.ones(2, device=two_devices[1])


def test_the_capability_lists_types_with_kernels(device):
    types = torch.accelerator.get_device_capability(device)["supported_dtypes"]
    assert {torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.bool, torch.complex64} <= types
    assert (torch.float64 in types) == torch.opencl.get_device_properties(device).has_fp64
    assert not {torch.uint16, torch.float8_e5m2, torch.qint8} & types


def test_events_order_streams(device):
    first, second = torch.Stream(device=device), torch.Stream(device=device)
    with first:
        a = torch.full((1 << 20,), 3.0, device=device)
        done = first.record_event()
    with second:
        second.wait_event(done)
        b = a * 2
    second.synchronize()
    assert second.query() and done.query()
    assert b.sum().item() == 6 << 20


def test_elapsed_time_is_of_the_work_between_two_events(device):
    begin, end = (torch.Event(device=device, enable_timing=True) for _ in range(2))
    stream = torch.accelerator.current_stream(device)
    begin.record(stream)
    x = torch.ones(1 << 20, device=device)
    for _ in range(10):
        x = x * 1.5
    end.record(stream)
    end.synchronize()
    assert begin.elapsed_time(end) > 0


def test_a_seed_gives_the_same_numbers_everywhere(two_devices):
    numbers = []
    for name in two_devices:
        torch.opencl.manual_seed_all(7)
        numbers.append(torch.randn(1000, device=name).cpu())
    assert torch.equal(*numbers)


def test_the_state_of_a_generator_is_kept_and_set(device):
    torch.manual_seed(3)
    state = torch.opencl.get_rng_state(device)
    first = torch.rand(5, device=device)
    assert not torch.equal(first, torch.rand(5, device=device))
    torch.opencl.set_rng_state(state, device)
    assert torch.equal(first, torch.rand(5, device=device))


def test_a_generator_of_its_own(device):
    generator = torch.Generator(device=device).manual_seed(5)
    first = torch.rand(4, device=device, generator=generator)
    generator.manual_seed(5)
    assert torch.equal(first, torch.rand(4, device=device, generator=generator))


def test_save_and_load_with_map_location(device):
    file = io.BytesIO()
    torch.save({"w": torch.arange(5.0, device=device)}, file)
    for location in (None, "cpu", "opencl:0"):
        file.seek(0)
        loaded = torch.load(file, map_location=location)["w"]
        assert loaded.tolist() == [0, 1, 2, 3, 4]
        assert loaded.device == torch.device(location or device)


def test_data_loader_with_pinned_memory(device):
    data = torch.utils.data.TensorDataset(torch.arange(64.0).reshape(16, 4))
    batches = [batch.to(device, non_blocking=True).sum().item()
               for (batch,) in torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)]
    assert sum(batches) == 64 * 63 / 2


def test_a_child_of_a_fork_reports_that_it_cannot_use_devices():
    code = ("import os, torch, torch_opencl\ntorch.ones(1, device='opencl')\npid = os.fork()\n"
            "if pid == 0:\n    try: torch.ones(1, device='opencl')\n    except RuntimeError as error: os._exit(7 if 'spawn' in str(error) else 1)\n"
            "    os._exit(0)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "7\n"


def test_the_library_knows_no_python():
    text = (pathlib.Path(torch_opencl.__file__).parent / "libtorch_opencl.so").read_bytes()
    assert b"libtorch_cpu" in text
    assert not any(name in text for name in (b"libpython", b"libtorch_python", b"PyObject_", b"Py_Initialize"))


def test_profilers_have_the_times_of_the_device(device):
    """They were not given any, and printed an error for each operator."""
    x = torch.randn(300, 300, device=device)
    with torch.opencl.device(device), torch.autograd.profiler.profile(use_device="opencl") as profile:
        for _ in range(3):
            x = (x @ x).tanh()
    averages = {event.key: event for event in profile.key_averages()}
    assert averages["aten::mm"].device_time_total > 0 and averages["aten::tanh"].device_time_total > 0  # which is longer depends on the load
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.PrivateUse1]) as profile:
        x @ x
    assert "aten::mm" in [event.key for event in profile.key_averages()] and "aten::mm" in profile.key_averages().table()


def test_the_example_trains_and_plots(tmp_path):
    example = pathlib.Path(__file__).parents[1] / "examples" / "train.py"
    run = subprocess.run([sys.executable, example, "perceptron", "opencl", "6"], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert "operators that ran on the CPU: none" in run.stdout and "kernels a step" in run.stdout, run.stderr
    if importlib.util.find_spec("matplotlib"):  # the figures are printed in any case
        assert (tmp_path / "train.png").read_bytes().startswith(b"\x89PNG")


def thread_of_gradients(device):
    threads = []
    x = torch.ones(3, device=device, requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: threads.append(threading.get_ident()))
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    return threads[0]


def test_with_one_device_the_calling_thread_computes_gradients(device):
    is_only = torch.opencl.device_count() == 1 and not torch.cuda.is_available()
    assert (thread_of_gradients(device) == threading.get_ident()) == is_only


def test_each_thread_computes_its_gradients(device):
    if torch.opencl.device_count() > 1 or torch.cuda.is_available():
        pytest.skip("several devices have threads")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: thread_of_gradients(device) == threading.get_ident(), range(20)))


def test_a_program_can_choose_a_thread_for_gradients(device):
    torch.ones(3, device=device) * 2
    with torch.autograd.set_multithreading_enabled(True):
        assert thread_of_gradients(device) != threading.get_ident()
