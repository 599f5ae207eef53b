// A map from the first address of each region to its buffer. An address belongs to the last region that begins at or before it; the
// distance to the beginning is the offset in the buffer.
#include <base/scope_exit.h>

#include <algorithm>
#include <proxy/proxy_memory.h>

namespace polder::proxy {
namespace {

// Nothing is mapped there, so that a host thread that takes an address for a pointer faults at once.
constexpr uint64_t first_address = uint64_t{1} << 50;
constexpr uint64_t address_bytes = uint64_t{1} << 46;

}  // namespace

Result<std::unique_ptr<ProxyMemory>> ProxyMemory::create(ForeignContext& context, const driver::DeviceInfo& info) {
    POLDER_ASSIGN(queue, context.create_queue(0));
    return std::unique_ptr<ProxyMemory>(new ProxyMemory(context, info, queue));
}

ProxyMemory::ProxyMemory(ForeignContext& context, const driver::DeviceInfo& info, cl_command_queue queue)
    : context_(context), base_(first_address + info.space.value * address_bytes), total_(info.memory_bytes),
      allocation_max_(info.allocation_bytes_max), granularity_(info.base_address_alignment), queue_(queue),
      addresses_({DeviceAddress{base_}, ByteCount{address_bytes}, Alignment{4096}}) {}

ProxyMemory::~ProxyMemory() {
    if (!context_.may_release())
        return;
    const Lock lock(mutex_);
    for (auto& [address, region] : regions_) {
        release_parts(region);
        context_.cl.clReleaseMemObject(region.buffer);
    }
    context_.cl.clReleaseCommandQueue(queue_);
}

// One byte is written, for implementations that allocate at first use. Waits for the event: a blocking write may return
// as soon as the implementation has its own copy of the byte, and would then overwrite what other queues write.
cl_int ProxyMemory::make_buffer(uint64_t size, cl_mem& buffer) {
    cl_int code = CL_SUCCESS;
    buffer = context_.cl.clCreateBuffer(context_.handle, CL_MEM_READ_WRITE, size, nullptr, &code);
    if (!buffer)
        return code == CL_SUCCESS ? CL_MEM_OBJECT_ALLOCATION_FAILURE : code;
    const char byte = 0;
    cl_event written = nullptr;
    code = context_.cl.clEnqueueWriteBuffer(queue_, buffer, CL_TRUE, size - 1, 1, &byte, 0, nullptr, &written);
    if (code == CL_SUCCESS)
        code = context_.cl.clWaitForEvents(1, &written);
    if (written)
        context_.cl.clReleaseEvent(written);
    if (code == CL_SUCCESS)
        return code;
    context_.cl.clReleaseMemObject(buffer);
    buffer = nullptr;
    return code;
}

Result<driver::Memory> ProxyMemory::reserve(ByteCount size) {
    const uint64_t bytes = granularity_.round_up(size.value);
    if (context_.is_lost())
        return fail(Status::mem_object_allocation_failure, context_.name + " is lost");
    const Lock lock(mutex_);
    if (bytes < size.value || bytes > allocation_max_ || bytes > total_ - reserved_)
        return fail(Status::mem_object_allocation_failure,
                    context_.name + " has no " + std::to_string(size.value) + " bytes in one buffer");
    const auto block = addresses_.allocate(ByteCount{bytes}, std::max(granularity_, Alignment{4096}));
    if (!block)
        return fail(Status::mem_object_allocation_failure, "no addresses for " + std::to_string(bytes) + " bytes");
    cl_mem buffer = nullptr;
    bool is_made = false;
    const ScopeExit undo{[&]() POLDER_NO_THREAD_SAFETY_ANALYSIS noexcept {  // under `lock`
        if (is_made)
            return;
        if (buffer)
            context_.cl.clReleaseMemObject(buffer);
        addresses_.free(*block);
    }};
    if (const cl_int code = make_buffer(bytes, buffer)) {
        context_.lose("clCreateBuffer", code);
        return fail(Status::mem_object_allocation_failure,
                    std::string(context_.error(code, "clCreateBuffer").detail()));
    }
    const DeviceAddress address = DeviceAddress{base_ + block->offset};
    regions_.emplace(address.value, Region{*block, bytes, buffer, {}, {}});
    is_made = true;
    reserved_ += bytes;
    return driver::Memory{address, bytes};
}

void ProxyMemory::release_parts(Region& region) {
    generation_.fetch_add(1, std::memory_order_acq_rel);
    if (context_.may_release()) {
        for (const Region::Image& image : region.images)
            context_.cl.clReleaseMemObject(image.image);
        for (const auto& [offset, part] : region.parts)
            context_.cl.clReleaseMemObject(part);
    }
    region.images.clear();
    region.parts.clear();
}

void ProxyMemory::release(driver::Memory memory) {
    const Lock lock(mutex_);
    const auto found = regions_.find(memory.address.value);
    assert(found != regions_.end());
    release_parts(found->second);
    if (context_.may_release())
        context_.cl.clReleaseMemObject(found->second.buffer);
    addresses_.free(found->second.block);
    reserved_ -= memory.size;
    regions_.erase(found);
}

ByteCount ProxyMemory::available() const {
    const Lock lock(mutex_);
    return ByteCount{context_.is_lost() ? 0 : total_ - reserved_};
}

ProxyMemory::Place ProxyMemory::resolve(DeviceAddress address) const {
    const Lock lock(mutex_);
    const auto found = std::prev(regions_.upper_bound(address.value));
    return {found->second.buffer, address.value - found->first};
}

cl_int ProxyMemory::buffer_at(DeviceAddress address, cl_mem& buffer) {
    const Lock lock(mutex_);
    const auto found = std::prev(regions_.upper_bound(address.value));
    return part_at(found->second, address.value - found->first, buffer);
}

cl_int ProxyMemory::image_at(DeviceAddress address, const ImageArgument& argument, cl_mem& image) {
    const Lock lock(mutex_);
    const auto found = std::prev(regions_.upper_bound(address.value));
    Region& region = found->second;
    const uint64_t offset = address.value - found->first;
    const auto known = std::ranges::find_if(region.images, [&](const Region::Image& each) {
        return each.offset == offset && have_one_shape(each.argument, argument) &&
               each.argument.descriptor.row_pitch == argument.descriptor.row_pitch;
    });
    if (known != region.images.end()) {
        image = known->image;
        return CL_SUCCESS;
    }
    // Far more than the images of all launches that set their arguments at this moment: those must stay until they are enqueued.
    constexpr size_t images_max = 1024;
    if (region.images.size() == images_max) {
        context_.cl.clReleaseMemObject(region.images.front().image);
        region.images.erase(region.images.begin());
    }
    region.images.reserve(region.images.size() + 1);
    cl_mem buffer = nullptr;
    if (const cl_int code = part_at(region, offset, buffer))
        return code;
    if (const cl_int code = create_image(context_, argument, buffer, image))
        return code;
    region.images.push_back({offset, argument, image});
    return CL_SUCCESS;
}

cl_int ProxyMemory::part_at(Region& region, uint64_t offset, cl_mem& buffer) {
    if (offset == 0) {
        buffer = region.buffer;
        return CL_SUCCESS;
    }
    const auto [part, is_new] = region.parts.try_emplace(offset, nullptr);
    if (!is_new) {
        buffer = part->second;
        return CL_SUCCESS;
    }
    const cl_buffer_region range{offset, region.size - offset};
    cl_int code = CL_SUCCESS;
    buffer =
        context_.cl.clCreateSubBuffer(region.buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &range, &code);
    if (!buffer) {
        region.parts.erase(part);
        return code == CL_SUCCESS ? CL_OUT_OF_RESOURCES : code;
    }
    part->second = buffer;
    return CL_SUCCESS;
}

}  // namespace polder::proxy
