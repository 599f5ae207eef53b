"""The tests run on the devices that POCL_DEVICES names; those that need two devices or Polder are skipped elsewhere."""
import pytest
import torch
import torch_opencl  # noqa: F401, where autoloading is off

def platform_has_statistics():
    """Whether OpenCL is Polder: it alone counts the regions that memory comes from."""
    torch.ones(1, device="opencl")
    return torch.opencl.memory_stats(0)["segment.all.current"] > 0


DEVICES = [f"opencl:{index}" for index in range(torch.opencl.device_count())]


def pytest_report_header():
    return [f"{name}: {torch.opencl.get_device_name(name)}" for name in DEVICES]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture
def two_devices():
    if len(DEVICES) < 2:
        pytest.skip("needs two devices")
    return DEVICES[:2]


@pytest.fixture(autouse=True)
def current_device_is_unchanged():
    """No operation leaves another device current than it found, also when it fails."""
    before = torch.opencl.current_device()
    yield
    assert torch.opencl.current_device() == before
