#include <host/clock.h>
#include <proxy/language.h>
#include <proxy/proxy_device.h>
#include <proxy/proxy_kernel.h>
#include <proxy/proxy_queue.h>

namespace polder::proxy {

Result<std::unique_ptr<driver::Device>> ProxyDevice::open(const ForeignDevice& foreign, const Parameters& parameters,
                                                          SpaceId space) {
    POLDER_ASSIGN(context, ForeignContext::open(foreign));
    driver::DeviceInfo info = info_of(*context, parameters, space);
    POLDER_ASSIGN(memory, ProxyMemory::create(*context, info));
    return std::unique_ptr<driver::Device>(new ProxyDevice(std::move(context), std::move(info), std::move(memory)));
}

Result<std::unique_ptr<driver::Queue>> ProxyDevice::create_queue(driver::QueueRole) {
    return ProxyQueue::create(*context_, *memory_);
}

Result<std::unique_ptr<driver::LoadedKernel>> ProxyDevice::load(const driver::KernelCode& code) {
    const auto* const source = std::get_if<driver::TargetCode>(&code);
    if (!source || source->format != driver::CodeFormat::opencl_c || !source->program)
        return fail(Status::out_of_resources, info_.name + " compiles source only");
    return ProxyKernel::load(*context_, *memory_, programs_, *source);
}

Result<std::unique_ptr<driver::Device>> ProxyDevice::create_sub_device(std::span<const uint32_t>) {
    return fail(Status::device_partition_failed, info_.name + " cannot be divided");
}

uint64_t ProxyDevice::now_ns() const { return devices::now_ns(); }

} // namespace polder::proxy
