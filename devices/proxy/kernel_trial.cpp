// clSetKernelArg must refuse what does not fit a parameter, so its errors show what a parameter is. Nothing invalid is passed that an
// implementation might follow: only null pointers, zeros, which are a null handle, and images (image_trial.h).
//
//                   | 8 zero bytes     | null pointer, 8 bytes
//   buffer          | accepted         | accepted
//   local memory    | refused          | accepted
//   value           | if it has 8      | refused
//   image, sampler  | refused by kind  | refused by kind
//
// The size of a value is the one that is accepted. Some implementations know a vector of 3 elements by two sizes, of which the larger one is
// correct; or do not know the size of a structure in machine code, and accept all sizes (decision 207).
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <proxy/image_trial.h>
#include <proxy/kernel_trial.h>

namespace polder::proxy {
namespace {

using Parameter = driver::MachineCodeKernel::Parameter;
using Kind = driver::KernelParameter::Kind;

constexpr uint32_t handle_bytes = sizeof(cl_mem);
// Of values. More than a double16, the largest type that is no structure.
constexpr uint32_t size_max = 1024;
// The size of a parameter that is accepted with more sizes is not known.
constexpr size_t sizes_max = 4;

class Trial {
public:
    Trial(const ForeignContext& context, ImageTrial& images, cl_kernel kernel, cl_uint index)
        : context_(context), images_(images), kernel_(kernel), index_(index) {}

    [[nodiscard]] std::optional<Parameter> parameter() const {
        const bool takes_null = set(handle_bytes, nullptr) == CL_SUCCESS;
        const cl_int zeros = set(handle_bytes, zeros_.data());
        if (takes_null)
            return Parameter{zeros == CL_SUCCESS ? Kind::global_pointer : Kind::local_pointer, handle_bytes};
        if (zeros == CL_INVALID_SAMPLER)
            return Parameter{Kind::sampler, handle_bytes};
        return zeros == CL_INVALID_MEM_OBJECT ? image() : value();
    }

private:
    [[nodiscard]] cl_int set(size_t size, const void* value) const {
        return context_.cl.clSetKernelArg(kernel_, index_, size, value);
    }
    [[nodiscard]] std::optional<Parameter> image() const {
        const std::optional<ImageTrial::Taken> taken = images_.try_parameter(kernel_, index_);
        if (!taken)
            return std::nullopt;
        return Parameter{Kind::image, handle_bytes, taken->type, taken->use};
    }
    [[nodiscard]] std::optional<Parameter> value() const {
        size_t sizes = 0;
        uint32_t largest = 0;
        for (uint32_t size = 1; size <= size_max; ++size)
            if (set(size, zeros_.data()) == CL_SUCCESS) {
                largest = size;
                ++sizes;
            }
        if (sizes == 0 || sizes > sizes_max)
            return std::nullopt;
        return Parameter{Kind::value, largest};
    }

    alignas(128) static constexpr std::array<std::byte, size_max> zeros_{};
    const ForeignContext& context_;
    ImageTrial& images_;
    const cl_kernel kernel_;
    const cl_uint index_;
};

// Of a kernel that lives as long as the call.
Result<void> examine(const ForeignContext& context, cl_kernel kernel, driver::MachineCodeKernel& result) {
    const cl_icd_dispatch& cl = context.cl;
    cl_uint count = 0;
    if (const cl_int code = cl.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr))
        return fail(context.error(code, "clGetKernelInfo"));
    ImageTrial images(context);
    for (cl_uint i = 0; i < count; ++i) {
        const std::optional<Parameter> parameter = Trial(context, images, kernel, i).parameter();
        if (!parameter)
            return fail(Status::invalid_binary,
                        "parameter " + std::to_string(i) + " of kernel " + result.name +
                            " is an image of a type that cannot be found out, or a value of such a size");
        result.parameters.push_back(*parameter);
    }
    size_t required[3] = {};
    if (cl.clGetKernelWorkGroupInfo(kernel, context.device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof required,
                                    required, nullptr) == CL_SUCCESS)
        std::ranges::copy(required, result.reqd_work_group_size);
    return {};
}

}  // namespace

Result<driver::MachineCodeKernel> examine(const ForeignContext& context, cl_program program, const std::string& name) {
    cl_int code = CL_SUCCESS;
    const cl_kernel kernel = context.cl.clCreateKernel(program, name.c_str(), &code);
    if (!kernel)
        return fail(Status::invalid_binary, "clCreateKernel of " + name + ": " + name_of(code));
    driver::MachineCodeKernel result;
    Result<void> examined = fail(Status::out_of_host_memory);
    try {
        result.name = name;
        examined = examine(context, kernel, result);
    } catch (...) {
        context.cl.clReleaseKernel(kernel);
        throw;
    }
    context.cl.clReleaseKernel(kernel);
    POLDER_TRY(examined);
    return result;
}

Result<std::vector<std::string>> kernel_names(const ForeignContext& context, cl_program program) {
    const cl_icd_dispatch& cl = context.cl;
    size_t size = 0;
    std::string text;
    cl_int code = cl.clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, nullptr, &size);
    if (code == CL_SUCCESS && size != 0) {
        text.resize(size);
        code = cl.clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, size, text.data(), nullptr);
    }
    if (code != CL_SUCCESS)
        return fail(context.error(code, "clGetProgramInfo"));
    text.resize(text.find('\0') == text.npos ? text.size() : text.find('\0'));
    std::vector<std::string> names;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find(';', begin), text.size());
        if (end != begin)
            names.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    std::ranges::sort(names);
    return names;
}

}  // namespace polder::proxy
