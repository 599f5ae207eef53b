"""Choices of Inductor that depend on the kind of device, and that no interface of a backend can make. They are changed where Inductor makes them, for
OpenCL devices alone."""
from torch._inductor import lowering
from torch._inductor.graph import GraphLowering


def _put_results_on_the_device():
    """An operator whose first input is a number on the CPU is computed on the device of the others. Inductor looks for them only among the devices
    that it calls GPUs, a list that is also that of the devices for which Triton is required."""
    is_gpu = lowering.is_gpu
    lowering.is_gpu = lambda device: device == "opencl" or is_gpu(device)


def _computes_on_a_device(node):
    return getattr(getattr(node.meta.get("val"), "device", None), "type", None) == "opencl"


def _keep_layouts_of_convolutions():
    """Inductor stores images and weights with channels last where a convolution has more than 64 of them. The package's convolutions read
    channels first, so each would first copy what the generated code had copied."""
    decide = GraphLowering.decide_layout_opt

    def decide_layout_opt(gm, **options):
        return not any(_computes_on_a_device(node) for node in gm.graph.nodes) and decide(gm, **options)

    GraphLowering.decide_layout_opt = staticmethod(decide_layout_opt)


def make():
    _put_results_on_the_device()
    _keep_layouts_of_convolutions()
