"""Bad input: PyTorch's usual exceptions, and nothing lost."""
import gc
import warnings

import pytest
import torch


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


def test_complex_numbers_are_computed_by_the_cpu(device):
    z = torch.tensor([1 + 2j, 3 - 1j]).to(device)
    assert z.cpu().tolist() == [1 + 2j, 3 - 1j]
    assert torch.view_as_real(z).tolist() == [[1, 2], [3, -1]]
    with pytest.raises(NotImplementedError, match="no kernel"):
        z + z


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
