// Loading creates the kernel there and reads its limits. A launch sets the arguments whose bytes differ from those of the launch before,
// then enqueues. All arguments are set again when a sub-buffer that one of them may be has been released (ProxyMemory::generation).
#include <algorithm>
#include <cstring>
#include <proxy/proxy_kernel.h>

namespace polder::proxy {
namespace {

using Kind = driver::KernelParameter::Kind;

uint64_t word_at(std::span<const std::byte> bytes, uint32_t offset) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + offset, sizeof word);
    return word;
}

template <class Value>
uint64_t ask_kernel(const ForeignContext& context, cl_kernel kernel, cl_kernel_work_group_info what) {
    Value value{};
    const cl_int code =
        context.cl.clGetKernelWorkGroupInfo(kernel, context.device, what, sizeof value, &value, nullptr);
    return code == CL_SUCCESS ? value : 0;
}

}  // namespace

Result<std::unique_ptr<driver::LoadedKernel>> ProxyKernel::load(ForeignContext& context, ProxyMemory& memory,
                                                                ProgramCache& programs,
                                                                const driver::TargetCode& code) {
    POLDER_ASSIGN(program, programs.get(context, *code.program, code.code));
    cl_int status = CL_SUCCESS;
    const cl_kernel kernel = context.cl.clCreateKernel(program->handle(), code.entry.c_str(), &status);
    if (!kernel)
        return fail(context.error(status, ("clCreateKernel of " + code.entry).c_str()));
    cl_uint arguments = 0;
    status = context.cl.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, nullptr);
    if (status != CL_SUCCESS || arguments != code.parameters.size()) {
        context.cl.clReleaseKernel(kernel);
        return fail(Status::out_of_resources, context.name + ": kernel " + code.entry + " has other arguments there");
    }
    driver::KernelLimits limits;
    limits.max_work_group_size = ask_kernel<size_t>(context, kernel, CL_KERNEL_WORK_GROUP_SIZE);
    limits.local_bytes = ask_kernel<cl_ulong>(context, kernel, CL_KERNEL_LOCAL_MEM_SIZE);
    limits.private_bytes_per_work_item = ask_kernel<cl_ulong>(context, kernel, CL_KERNEL_PRIVATE_MEM_SIZE);
    limits.preferred_multiple =
        std::max<uint64_t>(1, ask_kernel<size_t>(context, kernel, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE));
    try {
        return std::unique_ptr<driver::LoadedKernel>(
            new ProxyKernel(context, memory, std::move(program), kernel, code, limits));
    } catch (...) {
        context.cl.clReleaseKernel(kernel);
        throw;
    }
}

ProxyKernel::ProxyKernel(ForeignContext& context, ProxyMemory& memory, std::shared_ptr<ProxyProgram> program,
                         cl_kernel handle, const driver::TargetCode& code, const driver::KernelLimits& limits)
    : LoadedKernel(limits), context_(context), memory_(memory), program_(std::move(program)), handle_(handle),
      parameters_(code.parameters.begin(), code.parameters.end()),
      has_images_(std::ranges::find(parameters_, Kind::image, &driver::KernelParameter::kind) != parameters_.end()) {}

ProxyKernel::~ProxyKernel() {
    if (context_.may_release())
        context_.cl.clReleaseKernel(handle_);
}

LaunchWork ProxyKernel::work_of(const driver::LaunchOperation& operation) {
    LaunchWork launch;
    launch.kernel = static_cast<const ProxyKernel*>(operation.kernel);
    launch.work_dim = operation.work_dim;
    for (uint32_t d = 0; d < 3; ++d) {
        launch.global_offset[d] = operation.global_offset[d];
        launch.global_size[d] = operation.global_size[d];
        launch.local_size[d] = operation.local_size[d];
    }
    launch.local_argument_bytes = operation.local_argument_bytes;
    launch.arguments.append(operation.arguments);
    return launch;
}

// A __local argument holds where it begins; it ends where the next one begins, or where the launch's local memory ends.
uint64_t ProxyKernel::local_size(const LaunchWork& launch, uint64_t begin) const {
    const uint64_t end = limits().local_bytes + launch.local_argument_bytes;
    uint64_t next = end > begin ? end : begin + launch.local_argument_bytes;
    for (const driver::KernelParameter& parameter : parameters_)
        if (parameter.kind == Kind::local_pointer)
            if (const uint64_t other = word_at(launch.arguments.view(), parameter.offset); other > begin)
                next = std::min(next, other);
    return next - begin;
}

cl_int ProxyKernel::set_argument(cl_uint index, const LaunchWork& launch) const {
    const driver::KernelParameter& parameter = parameters_[index];
    const cl_icd_dispatch& cl = context_.cl;
    if (parameter.kind == Kind::value)
        return cl.clSetKernelArg(handle_, index, parameter.size, launch.arguments.data() + parameter.offset);
    const uint64_t word = word_at(launch.arguments.view(), parameter.offset);
    if (parameter.kind == Kind::local_pointer)
        return cl.clSetKernelArg(handle_, index, local_size(launch, word), nullptr);
    if (parameter.kind == Kind::sampler) {
        cl_sampler sampler = nullptr;
        if (const cl_int code = context_.sampler(word, sampler))
            return code;
        return cl.clSetKernelArg(handle_, index, sizeof sampler, &sampler);
    }
    cl_mem buffer = nullptr;
    if (word != 0)
        if (const cl_int code = memory_.buffer_at(DeviceAddress{word}, buffer))
            return code;
    return cl.clSetKernelArg(handle_, index, sizeof buffer, &buffer);
}

cl_int ProxyKernel::set_arguments(const LaunchWork& launch) const {
    const uint64_t generation = memory_.generation();
    const bool is_known = set_.size() == launch.arguments.size() && set_generation_ == generation;
    const bool has_same_locals = is_known && set_local_bytes_ == launch.local_argument_bytes;
    if (has_same_locals && std::ranges::equal(set_, launch.arguments))
        return CL_SUCCESS;
    for (cl_uint i = 0; i < parameters_.size(); ++i) {
        const driver::KernelParameter& parameter = parameters_[i];
        if (parameter.kind == Kind::image)
            continue;
        const bool is_local = parameter.kind == Kind::local_pointer;
        if (is_known && (!is_local || has_same_locals) &&
            std::memcmp(set_.data() + parameter.offset, launch.arguments.data() + parameter.offset, parameter.size) ==
                0)
            continue;
        if (const cl_int code = set_argument(i, launch)) {
            set_.clear();
            return code;
        }
    }
    set_.assign(launch.arguments.begin(), launch.arguments.end());
    set_local_bytes_ = launch.local_argument_bytes;
    set_generation_ = generation;
    return CL_SUCCESS;
}

// What the launch gives to the parameters that are images. Where it gives one image to several that may write it, one image object must do for
// all of them.
SmallVector<ImageArgument, 4> ProxyKernel::image_arguments(const LaunchWork& launch) const {
    SmallVector<ImageArgument, 4> arguments;
    for (const driver::KernelParameter& parameter : parameters_) {
        if (parameter.kind != Kind::image)
            continue;
        ImageArgument argument{parameter.image_type, parameter.image_use, {}};
        std::memcpy(&argument.descriptor, launch.arguments.data() + parameter.offset, sizeof argument.descriptor);
        for (ImageArgument& other : arguments)
            if (write_one_image(other, argument) && other.use != argument.use)
                other.use = argument.use = driver::ImageUse::read_write;
        arguments.push_back(argument);
    }
    return arguments;
}

cl_int ProxyKernel::set_images(const LaunchWork& launch, ProxyImages& images, LaunchImages& taken) const {
    images.begin_launch();
    const SmallVector<ImageArgument, 4> arguments = image_arguments(launch);
    for (cl_uint i = 0; i < parameters_.size(); ++i) {
        if (parameters_[i].kind != Kind::image)
            continue;
        const ImageArgument& argument = arguments[taken.size()];
        const auto same = std::ranges::find_if(
            taken, [&](const LaunchImage& other) { return write_one_image(other.argument, argument); });
        LaunchImage image;
        if (same != taken.end()) {
            // Copied once: a second copy back would undo what was written through this parameter.
            image.image = same->image;
            image.argument = argument;
        } else if (const cl_int code = images.take(argument, image)) {
            return code;
        }
        taken.push_back(image);
        if (const cl_int code = context_.cl.clSetKernelArg(handle_, i, sizeof image.image, &image.image))
            return code;
    }
    return CL_SUCCESS;
}

cl_int ProxyKernel::enqueue_with_images(const LaunchWork& launch, ProxyImages& images, cl_command_queue queue,
                                        std::span<const cl_event> waits, ImageEvents& events) const {
    const Lock lock(mutex_);
    LaunchImages taken;
    if (const cl_int code = set_images(launch, images, taken))
        return code;
    if (const cl_int code = set_arguments(launch))
        return code;
    // Also a launch that fails has ended only when what was enqueued for it has: its copies use the bytes of its buffers.
    CommandChain before(context_, waits);
    cl_int code = CL_SUCCESS;
    for (const LaunchImage& image : taken)
        if (code == CL_SUCCESS && image.rows.buffer)
            code = images.copy_in(queue, image, before);
    waits = before.waits();
    if (code == CL_SUCCESS)
        code = context_.cl.clEnqueueNDRangeKernel(
            queue, handle_, launch.work_dim, launch.global_offset, launch.global_size, launch.local_size,
            static_cast<cl_uint>(waits.size()), waits.empty() ? nullptr : waits.data(), &events.executed);
    if (code != CL_SUCCESS) {
        events.done = before.take();
        return code;
    }
    CommandChain behind(context_, {&events.executed, 1});
    for (const LaunchImage& image : taken)
        if (code == CL_SUCCESS && image.rows.buffer && image.argument.use != driver::ImageUse::read)
            code = images.copy_out(queue, image, behind);
    events.done = behind.take();
    return code;
}

cl_int ProxyKernel::enqueue(const LaunchWork& launch, cl_command_queue queue, std::span<const cl_event> waits,
                            cl_event* done) const {
    const Lock lock(mutex_);
    if (const cl_int code = set_arguments(launch))
        return code;
    return context_.cl.clEnqueueNDRangeKernel(queue, handle_, launch.work_dim, launch.global_offset, launch.global_size,
                                              launch.local_size, static_cast<cl_uint>(waits.size()),
                                              waits.empty() ? nullptr : waits.data(), done);
}

}  // namespace polder::proxy
