"""Which nodes of a graph become one kernel, and the Python code that calls the kernels."""
from torch._inductor.codegen.common import BackendFeature
from torch._inductor.codegen.simd import SIMDScheduling
from torch._inductor.codegen.wrapper import PythonWrapperCodegen, SubgraphPythonWrapperCodegen
from torch._inductor.utils import get_kernel_metadata
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from .kernel import OpenCLKernel
from .products import product_of, ProductLine


class OpenCLScheduling(SIMDScheduling):
    kernel_type = OpenCLKernel

    def get_backend_features(self, device):
        return OrderedSet([BackendFeature.INPLACE_BUFFERS])

    def define_kernel(self, src_code, node_schedule, kernel):
        wrapper = V.graph.wrapper_code
        if src_code in wrapper.src_to_kernel:
            return wrapper.src_to_kernel[src_code]
        name = f"opencl_kernel_{wrapper.next_kernel_suffix()}"
        wrapper.src_to_kernel[src_code] = name
        origins, detailed_origins = get_kernel_metadata(node_schedule, wrapper)
        wrapper.define_kernel(name, src_code, f"{origins}\n{detailed_origins}", gpu=False)
        return name


class _Calls:
    """The code around the kernels, where it differs for OpenCL devices."""

    def _generate_kernel_call_helper(self, kernel_name, call_args, *, device=None, **options):
        device = device or V.graph.get_current_device_or_throw()
        if device.type == "opencl":
            self.writeline(self.wrap_kernel_call(kernel_name, call_args))
        else:
            super()._generate_kernel_call_helper(kernel_name, call_args, device=device, **options)

    def generate_extern_kernel_out(self, node):
        device = node.get_device()
        product = product_of(node) if device is not None and device.type == "opencl" else None
        if product is None:
            return super().generate_extern_kernel_out(node)
        text, arguments = product
        if text not in self.src_to_kernel:
            self.src_to_kernel[text] = f"opencl_product_{self.next_kernel_suffix()}"
            self.define_kernel(self.src_to_kernel[text], text, gpu=False)
        node.codegen_comment(self)
        self.writeline(ProductLine(self, node, self.src_to_kernel[text], arguments))

    def make_allocation(self, name, device, dtype, shape, stride, allocation_shape=None, is_pinned=False):
        if device.type != "opencl":
            return super().make_allocation(name, device, dtype, shape, stride, allocation_shape, is_pinned)
        shape, stride, allocated = (self.codegen_python_shape_tuple(sizes) for sizes in (shape, stride, allocation_shape or shape))
        view = "" if allocated == shape else f".as_strided({shape}, {stride})"
        index = -1 if device.index is None else device.index
        return f"{name} = empty_strided_opencl({allocated}, {stride}, {dtype}, {index}){view}"


class OpenCLWrapper(_Calls, PythonWrapperCodegen):
    @staticmethod
    def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        if is_subgraph:
            return OpenCLSubgraphWrapper(subgraph_name, parent_wrapper, partition_signatures)
        return OpenCLWrapper()

    def write_header(self):
        super().write_header()
        self.imports.writeline("from torch_opencl._calls import empty_strided_opencl, opencl_kernel, opencl_product")


class OpenCLSubgraphWrapper(_Calls, SubgraphPythonWrapperCodegen):
    pass
