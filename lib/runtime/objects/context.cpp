// Creation and destruction of contexts, and their queries. References are counted in shards (scattered_references.h). The context's domain
// is made of the memory spaces of its devices, each once.
#include <base/log.h>
#include <runtime/address_map.h>
#include <runtime/context.h>
#include <runtime/device_queue.h>
#include <runtime/platform.h>

#include <algorithm>
#include <string>

namespace polder::runtime {
namespace {

// The memory spaces of the devices, and host memory, each once.
std::vector<memory::Space*> spaces_of(std::span<const Ref<Device>> devices) {
    std::vector<memory::Space*> spaces{Platform::get().spaces().front()};
    for (const Ref<Device>& device : devices)
        if (std::find(spaces.begin(), spaces.end(), &device->space()) == spaces.end())
            spaces.push_back(&device->space());
    return spaces;
}

uint64_t largest_allocation(std::span<const Ref<Device>> devices) {
    uint64_t largest = 0;
    for (const Ref<Device>& device : devices)
        largest = std::max(largest, max_allocation_bytes(*device));
    return largest;
}

SpaceSet spaces_in_place(std::span<const Ref<Device>> devices) {
    SpaceSet spaces;
    for (const Ref<Device>& device : devices)
        if (device->in_place_regions())
            spaces.insert(device->space_id());
    return spaces;
}

memory::Allocator& host_pool() {
    const auto spaces = Platform::get().spaces();
    return (*std::ranges::find_if(spaces, [](const memory::Space* space) { return space->id().is_host(); }))->pool();
}

// Null when no device uses host memory in place. A device and its sub-devices may return the same HostRegions, which is used once.
std::shared_ptr<memory::InPlaceHeap> make_in_place_heap(std::span<const Ref<Device>> devices) {
    std::vector<driver::HostRegions*> regions;
    for (const Ref<Device>& device : devices)
        if (driver::HostRegions* const one = device->in_place_regions();
            one && std::ranges::find(regions, one) == regions.end())
            regions.push_back(one);
    return regions.empty() ? nullptr : std::make_shared<memory::InPlaceHeap>(std::move(regions), host_pool());
}

}  // namespace

Ref<Context> Context::create(std::vector<Ref<Device>> devices, std::vector<cl_context_properties> properties,
                             Notify callback, void* user) {
    return Ref<Context>::adopt(new Context(std::move(devices), std::move(properties), callback, user));
}

Context::Context(std::vector<Ref<Device>> devices, std::vector<cl_context_properties> properties, Notify callback,
                 void* user)
    : devices_(std::move(devices)), max_allocation_bytes_(largest_allocation(devices_)),
      properties_(std::move(properties)), notify_(callback), notify_user_(user),
      domain_(memory::Domain::create(spaces_of(devices_))), in_place_spaces_(spaces_in_place(devices_)),
      in_place_heap_(make_in_place_heap(devices_)), addresses_(std::make_unique<AddressMap>()) {}

Context::~Context() {
    // Calls the callback that was registered last first, as the specification says; the handle is still valid.
    for (auto callback = destructors_.rbegin(); callback != destructors_.rend(); ++callback)
        callback->function(static_cast<cl_context>(handle()), callback->user);
}

DeviceQueue* Context::find_default_queue(const Device& device) const {
    for (DeviceQueue* const queue : default_queues_)
        if (&queue->device() == &device)
            return queue;
    return nullptr;
}

DeviceQueue* Context::default_queue(const Device& device) const {
    const Lock lock(mutex_);
    return find_default_queue(device);
}

uint64_t Context::default_queue_number(const Device& device) const {
    const Lock lock(mutex_);
    const DeviceQueue* const queue = find_default_queue(device);
    return queue ? queue->number() : 0;
}

DeviceQueue* Context::retain_default_queue(const Device& device) {
    const Lock lock(mutex_);
    DeviceQueue* const queue = find_default_queue(device);
    if (queue)
        queue->retain_api();
    return queue;
}

void Context::set_default_queue(DeviceQueue& queue) {
    const Lock lock(mutex_);
    std::erase(default_queues_, find_default_queue(queue.device()));
    default_queues_.push_back(&queue);
}

bool Context::release_queue(DeviceQueue& queue) {
    const Ref<DeviceQueue> keep = Ref<DeviceQueue>::share(&queue);
    const Lock lock(mutex_);
    if (!queue.release_api())
        return false;
    if (queue.api_references() == 0)
        std::erase(default_queues_, &queue);
    return true;
}

bool Context::has(const Device& device) const {
    return std::any_of(devices_.begin(), devices_.end(),
                       [&](const Ref<Device>& mine) { return mine.get() == &device; });
}

uint64_t Context::max_svm_allocation_bytes() const {
    uint64_t smallest = ~uint64_t{0};
    for (const Ref<Device>& device : devices_)
        smallest = std::min(smallest, runtime::max_allocation_bytes(*device));
    return smallest;
}

bool Context::has_svm() const {
    return std::any_of(devices_.begin(), devices_.end(), [](const Ref<Device>& d) { return d->has_svm(); });
}

bool Context::has_fine_grained_svm() const {
    return std::all_of(devices_.begin(), devices_.end(),
                       [](const Ref<Device>& d) { return d->has_fine_grained_svm(); });
}

uint64_t Context::min_base_alignment() const {
    uint64_t smallest = ~uint64_t{0};
    for (const Ref<Device>& device : devices_)
        smallest = std::min(smallest, device->info().base_address_alignment);
    return smallest;
}

void Context::notify(std::string_view text) const {
    if (notify_)
        notify_(std::string(text).c_str(), nullptr, 0, notify_user_);
}

void Context::notify_user(std::string_view text) const {
    POLDER_LOG(error, "%.*s", static_cast<int>(text.size()), text.data());
    notify(text);
}

void Context::add_destructor(Destructor function, void* user) {
    Lock lock(mutex_);
    destructors_.push_back({function, user});
}

}  // namespace polder::runtime
