// The Python module torch_opencl._calls: what the code that Inductor writes calls most often, without PyTorch's parser of arguments and its
// dispatcher, which cost more than most of the generated kernels. An exception of C++ becomes the Python exception that PyTorch makes of it.
#include "../compiled.h"

#include <ATen/EmptyTensor.h>
#include <Python.h>
#include <c10/core/DeviceGuard.h>
#include <structmember.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>

namespace {

using torch_opencl::GeneratedKernel;
using torch_opencl::GeneratedProduct;
using torch_opencl::MatrixPlace;

// A Python object that owns `held` and is called without a tuple of its arguments.
template <class Held>
struct Callable {
    PyObject_HEAD;
    vectorcallfunc call;
    Held* held;

    inline static PyTypeObject* type = nullptr;

    // Null, with a Python exception, when there is no memory.
    static PyTypeObject* make_type(const char* name) {
        PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Callable, call), READONLY, nullptr},
                                 {nullptr, 0, 0, 0, nullptr}};
        PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                               {Py_tp_dealloc, reinterpret_cast<void*>(&free)},
                               {Py_tp_members, members},
                               {0, nullptr}};
        PyType_Spec spec = {name, sizeof(Callable), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
        return type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    }
    static PyObject* make(vectorcallfunc call, std::unique_ptr<Held> held) {
        auto* const made = PyObject_New(Callable, type);
        if (!made)
            return nullptr;
        made->call = call;
        made->held = held.release();
        return reinterpret_cast<PyObject*>(made);
    }
    static Held& held_by(PyObject* object) { return *reinterpret_cast<Callable*>(object)->held; }

private:
    static void free(PyObject* object) {
        PyTypeObject* const own_type = Py_TYPE(object);
        delete reinterpret_cast<Callable*>(object)->held;
        own_type->tp_free(object);
        Py_DECREF(own_type);
    }
};

// Called with tensors of a device, then tensors of one element in host memory, then integers. Global sizes that are not constants are the last
// argument.
struct Kernel {
    GeneratedKernel generated;
    Py_ssize_t addresses, scalars, values;
    bool has_sizes;
    std::array<size_t, 3> global, local;
};

int64_t integer(PyObject* object) {
    const int64_t value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred())
        throw python_error();
    return value;
}

c10::SmallVector<int64_t, 8> integers(PyObject* tuple) {
    TORCH_CHECK_TYPE(PyTuple_Check(tuple), "opencl: sizes and strides are tuples");
    c10::SmallVector<int64_t, 8> values;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
        values.push_back(integer(PyTuple_GET_ITEM(tuple, i)));
    return values;
}

std::array<size_t, 3> launch_sizes(PyObject* tuple) {
    const auto given = integers(tuple);
    TORCH_CHECK_VALUE(given.size() <= 3, "opencl: a launch has at most three dimensions");
    std::array<size_t, 3> sizes{1, 1, 1};
    for (size_t i = 0; i < given.size(); ++i)
        sizes[i] = static_cast<size_t>(given[i]);
    return sizes;
}

PyObject* call_kernel(PyObject* object, PyObject* const* arguments, size_t flags, PyObject* names) {
    HANDLE_TH_ERRORS
    Kernel& self = Callable<Kernel>::held_by(object);
    const Py_ssize_t tensors_end = self.addresses + self.scalars;
    const Py_ssize_t wanted = tensors_end + self.values + (self.has_sizes ? 0 : 1);
    TORCH_CHECK_TYPE(!names && PyVectorcall_NARGS(flags) == wanted, "opencl: this kernel has ", wanted, " arguments");
    c10::SmallVector<const at::Tensor*, 16> tensors;
    for (Py_ssize_t i = 0; i < tensors_end; ++i) {
        TORCH_CHECK_TYPE(THPVariable_Check(arguments[i]), "opencl: argument ", i, " of a kernel is not a tensor");
        tensors.push_back(&THPVariable_Unpack(arguments[i]));
    }
    const c10::ArrayRef<const at::Tensor*> all(tensors);
    const auto on_device = all.slice(0, static_cast<size_t>(self.addresses));
    const auto scalars = all.slice(static_cast<size_t>(self.addresses));
    // Inductor writes code that changes the current device for PyTorch's own devices alone, so the tensors name the device.
    c10::OptionalDeviceGuard guard;
    if (self.addresses > 0)
        guard.reset_device(tensors[0]->device());
    c10::SmallVector<int64_t, 8> values;
    for (Py_ssize_t i = 0; i < self.values; ++i)
        values.push_back(integer(arguments[tensors_end + i]));
    const auto global = self.has_sizes ? self.global : launch_sizes(arguments[wanted - 1]);
    {
        // The first launch compiles the kernel, and every launch may wait for memory.
        const pybind11::gil_scoped_release released;
        self.generated.launch(on_device, scalars, values, global, self.local);
    }
    Py_RETURN_NONE;
    END_HANDLE_TH_ERRORS
}

// opencl_kernel(source, addresses, values, group_size, sizes, scalars=0): a function of `addresses` tensors, then `scalars` tensors of one element in
// host memory, which the call copies, then `values` integers. `sizes` are the global sizes of its launches, or None where each call gives them as its
// last argument. A group_size of 0 is chosen by the implementation.
PyObject* make_kernel(PyObject*, PyObject* arguments, PyObject* names) {
    HANDLE_TH_ERRORS
    static const char* parameters[] = {"source", "addresses", "values", "group_size", "sizes", "scalars", nullptr};
    const char* source = nullptr;
    Py_ssize_t addresses = 0, values = 0, group_size = 0, scalars = 0;
    PyObject* sizes = nullptr;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "snnnO|n", const_cast<char**>(parameters), &source, &addresses,
                                     &values, &group_size, &sizes, &scalars))
        return nullptr;
    TORCH_CHECK_VALUE(addresses >= 0 && values >= 0 && group_size >= 0 && scalars >= 0,
                      "opencl: a kernel has no negative number of arguments or work-items");
    const auto global = sizes == Py_None ? std::array<size_t, 3>{} : launch_sizes(sizes);
    const auto local = static_cast<size_t>(group_size);
    return Callable<Kernel>::make(
        &call_kernel, std::unique_ptr<Kernel>(
                          new Kernel{GeneratedKernel(source), addresses, scalars, values, sizes != Py_None, global,
                                     local ? std::array<size_t, 3>{local, 1, 1} : std::array<size_t, 3>{}}));
    END_HANDLE_TH_ERRORS
}

// Called with the tensors out, a, b, and where there is one, c.
PyObject* call_product(PyObject* object, PyObject* const* arguments, size_t flags, PyObject* names) {
    HANDLE_TH_ERRORS
    const GeneratedProduct& product = Callable<GeneratedProduct>::held_by(object);
    const auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
    TORCH_CHECK_TYPE(!names && count == product.tensors(), "opencl: this product has ", product.tensors(),
                     " arguments");
    c10::SmallVector<const at::Tensor*, 4> tensors;
    for (size_t i = 0; i < count; ++i) {
        TORCH_CHECK_TYPE(THPVariable_Check(arguments[i]), "opencl: argument ", i, " of a product is not a tensor");
        tensors.push_back(&THPVariable_Unpack(arguments[i]));
    }
    {
        const pybind11::gil_scoped_release released;
        product.run(tensors);
    }
    Py_RETURN_NONE;
    END_HANDLE_TH_ERRORS
}

// A matrix as a tuple (sizes, strides, offset).
MatrixPlace place_of(PyObject* object) {
    TORCH_CHECK_TYPE(PyTuple_Check(object) && PyTuple_GET_SIZE(object) == 3,
                     "opencl: a matrix of a product is (sizes, strides, offset)");
    const auto sizes = integers(PyTuple_GET_ITEM(object, 0)), strides = integers(PyTuple_GET_ITEM(object, 1));
    return {at::DimVector(sizes.begin(), sizes.end()), at::DimVector(strides.begin(), strides.end()),
            integer(PyTuple_GET_ITEM(object, 2))};
}

// opencl_product(out, a, b, c=None, *, alpha, beta): a function of tensors that have the matrices at these places.
PyObject* make_product(PyObject*, PyObject* arguments, PyObject* names) {
    HANDLE_TH_ERRORS
    static const char* parameters[] = {"out", "a", "b", "c", "alpha", "beta", nullptr};
    PyObject *out = nullptr, *a = nullptr, *b = nullptr, *c = Py_None;
    double alpha = 1, beta = 1;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "OOO|O$dd", const_cast<char**>(parameters), &out, &a, &b, &c,
                                     &alpha, &beta))
        return nullptr;
    return Callable<GeneratedProduct>::make(
        &call_product,
        std::make_unique<GeneratedProduct>(place_of(out), place_of(a), place_of(b),
                                           c == Py_None ? std::nullopt : std::optional(place_of(c)), alpha, beta));
    END_HANDLE_TH_ERRORS
}

// empty_strided_opencl(size, stride, dtype, index): a tensor of the device with this index, or of the current one if it is -1.
PyObject* empty_strided(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    HANDLE_TH_ERRORS
    TORCH_CHECK_TYPE(count == 4 && THPDtype_Check(arguments[2]),
                     "opencl: empty_strided_opencl(size, stride, dtype, index)");
    const auto sizes = integers(arguments[0]);
    const auto strides = integers(arguments[1]);
    const auto type = reinterpret_cast<THPDtype*>(arguments[2])->scalar_type;
    const int64_t index = integer(arguments[3]);
    TORCH_CHECK_VALUE(index >= -1 && index <= INT8_MAX, "opencl: there is no device ", index);
    c10::OptionalDeviceGuard guard;
    if (index >= 0)
        guard.reset_device(c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index)));
    return THPVariable_Wrap(
        at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(c10::DeviceType::PrivateUse1),
                                          c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type));
    END_HANDLE_TH_ERRORS
}

PyMethodDef functions[] = {{"opencl_kernel", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&make_kernel)),
                            METH_VARARGS | METH_KEYWORDS, nullptr},
                           {"opencl_product", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&make_product)),
                            METH_VARARGS | METH_KEYWORDS, nullptr},
                           {"empty_strided_opencl",
                            reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&empty_strided)), METH_FASTCALL,
                            nullptr},
                           {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_calls", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__calls() {
    return Callable<Kernel>::make_type("torch_opencl._calls.Kernel") &&
                   Callable<GeneratedProduct>::make_type("torch_opencl._calls.Product")
               ? PyModule_Create(&definition)
               : nullptr;
}
