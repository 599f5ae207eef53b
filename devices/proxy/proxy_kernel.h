// ProxyKernel: a kernel of another implementation. Polder's packed arguments become calls of clSetKernelArg by the kinds
// of the parameters: values as they are, addresses as buffers, places in local memory as sizes, images and samplers as objects. An
// argument that is the same as in the kernel's last launch is not set again, unless it is an image.
//
// Setting arguments and enqueueing are one step under the kernel's mutex. Any thread.
#pragma once

#include <base/mutex.h>
#include <base/small_vector.h>

#include <polder/driver.h>
#include <proxy/proxy_images.h>
#include <proxy/proxy_memory.h>
#include <proxy/proxy_program.h>
#include <span>
#include <vector>

namespace polder::proxy {

// A launch with copies of what the caller's points to.
struct LaunchWork {
    const class ProxyKernel* kernel = nullptr;
    cl_uint work_dim = 1;
    size_t global_offset[3] = {};
    size_t global_size[3] = {};
    size_t local_size[3] = {};
    uint64_t local_argument_bytes = 0;
    SmallVector<std::byte, 128> arguments;
};

class ProxyKernel final : public driver::LoadedKernel {
public:
    [[nodiscard]] static Result<std::unique_ptr<driver::LoadedKernel>>
    load(ForeignContext& context, ProxyMemory& memory, ProgramCache& programs, const driver::TargetCode& code);
    ~ProxyKernel() override;

    [[nodiscard]] static LaunchWork work_of(const driver::LaunchOperation& operation);
    [[nodiscard]] const ProxyProgram& program() const { return *program_; }
    [[nodiscard]] bool has_images() const { return has_images_; }
    // Of a kernel without images. `done` may be null.
    [[nodiscard]] cl_int enqueue(const LaunchWork& launch, cl_command_queue queue, std::span<const cl_event> waits,
                                 cl_event* done) const;
    // Of any kernel, with what is copied for its images. Null where there was no such command: `executed` is the kernel's event, and
    // `done` that of the last command behind it.
    struct ImageEvents {
        cl_event executed = nullptr;
        cl_event done = nullptr;
    };
    [[nodiscard]] cl_int enqueue_with_images(const LaunchWork& launch, ProxyImages& images, cl_command_queue queue,
                                             std::span<const cl_event> waits, ImageEvents& events) const;

private:
    ProxyKernel(ForeignContext& context, ProxyMemory& memory, std::shared_ptr<ProxyProgram> program, cl_kernel handle,
                const driver::TargetCode& code, const driver::KernelLimits& limits);
    [[nodiscard]] cl_int set_arguments(const LaunchWork& launch) const POLDER_REQUIRES(mutex_);
    [[nodiscard]] SmallVector<ImageArgument, 4> image_arguments(const LaunchWork& launch) const;
    // Those that are images, for which it returns one each.
    [[nodiscard]] cl_int set_images(const LaunchWork& launch, ProxyImages& images, LaunchImages& taken) const
        POLDER_REQUIRES(mutex_);
    [[nodiscard]] cl_int set_argument(cl_uint index, const LaunchWork& launch) const POLDER_REQUIRES(mutex_);
    [[nodiscard]] uint64_t local_size(const LaunchWork& launch, uint64_t begin) const;

    ForeignContext& context_;
    ProxyMemory& memory_;
    const std::shared_ptr<ProxyProgram> program_;
    const cl_kernel handle_;
    const std::vector<driver::KernelParameter> parameters_;
    const bool has_images_;
    mutable Mutex mutex_;
    // The packed arguments from which the kernel's arguments were set last; empty when they are not known.
    mutable std::vector<std::byte> set_ POLDER_GUARDED_BY(mutex_);
    mutable uint64_t set_local_bytes_ POLDER_GUARDED_BY(mutex_) = 0;
    mutable uint64_t set_generation_ POLDER_GUARDED_BY(mutex_) = 0;
};

}  // namespace polder::proxy
