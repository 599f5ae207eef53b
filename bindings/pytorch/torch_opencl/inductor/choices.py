"""Choices of Inductor that depend on the kind of device, and that no interface of a backend can make. They are changed where Inductor makes them, for
OpenCL devices alone."""
import torch
from torch._inductor import ir, lowering
from torch._inductor.codegen.common import pointwise_overrides_data
from torch._inductor.graph import GraphLowering

from .operations import Operations


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


def _call_operators_without_an_expression():
    """Some functions of mathematics have no expression in OpenCL C here (`torch.special.i0`). Inductor asks for one on each device but Triton's."""
    def called(operator, lower):
        call = lowering.fallback_handler(operator, add_to_fallback_set=False)

        def lowered(*arguments, **options):
            is_here = any(isinstance(value, ir.TensorBox) and value.get_device().type == "opencl" for value in arguments)
            return (call if is_here else lower)(*arguments, **options)

        return lowered

    for name, data in pointwise_overrides_data.items():
        operators = getattr(torch.ops.aten, data.name, None) if Operations._is_unimplemented(name) else None
        for overload in operators.overloads() if operators else ():
            operator = getattr(operators, overload)
            if operator in lowering.lowerings:
                lowering.lowerings[operator] = called(operator, lowering.lowerings[operator])


def make():
    _put_results_on_the_device()
    _keep_layouts_of_convolutions()
    _call_operators_without_an_expression()
