// `note_copy` counts copied bytes and decides, the thread registers, `remove_region` unregisters. A piece is a run of granules that is registered
// as one. Its granules are not pageable from the decision on, so that none of its pages is discarded before, during or after the registration.
#include "adaptive_pins.h"

#include "host_bytes.h"

#include <base/log.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <sys/utsname.h>
#include <utility>

namespace polder::memory {
namespace {

// After so many refusals by devices, nothing more is registered.
constexpr uint32_t refusals_max = 8;
// The most bytes of one registration, which takes 6 ms then: removing a region waits for it, and so may other calls of the driver.
constexpr uint64_t piece_bytes_max = uint64_t{64} << 20;

// The addresses of a region. Its first and last granule may be smaller than the others.
ByteRange addresses_of(driver::Memory memory) { return {memory.address.value, memory.address.value + memory.size}; }

uint64_t granule_of(uint64_t address) { return address / AdaptivePins::granule_bytes; }

}  // namespace

bool AdaptivePins::are_forks_safe() {
    static const bool are_safe = [] {
        utsname system{};
        if (uname(&system) != 0)
            return false;
        char* rest = nullptr;
        const auto major = std::strtoul(system.release, &rest, 10);
        const auto minor = *rest == '.' ? std::strtoul(rest + 1, nullptr, 10) : 0;
        return major > 5 || (major == 5 && minor >= 10);
    }();
    return are_safe;
}

AdaptivePins::AdaptivePins(ByteCount bytes_max) : bytes_max_(bytes_max.value) {}

AdaptivePins::~AdaptivePins() {
    {
        const Lock lock(mutex_);
        is_stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void AdaptivePins::add_device(driver::HostRegions& device) {
    const Lock lock(mutex_);
    if (is_forked_ || std::ranges::find(devices_, &device) != devices_.end())
        return;
    devices_.push_back(&device);
    has_devices_.store(true, std::memory_order_relaxed);
    size_t known = 0;
    for (const std::unique_ptr<Region>& region : regions_)
        for (size_t i = 0; i < region->pieces.size(); ++i)
            if (region->pieces[i].memory.size != 0) {
                requests_.push_back({region.get(), i});
                ++known;
            }
    if (known != 0 && !start_thread())
        requests_.clear();
}

// The region that contains the address, or the first region after it.
AdaptivePins::RegionList::iterator AdaptivePins::find(uint64_t address) {
    return std::ranges::partition_point(
        regions_, [&](const std::unique_ptr<Region>& region) { return addresses_of(region->memory).end <= address; });
}

void AdaptivePins::add_region(driver::Memory region) noexcept {
    try {
        auto added = std::make_unique<Region>();
        added->memory = region;
        const Lock lock(mutex_);
        const auto next = find(region.address.value);
        if (next != regions_.end() && addresses_of((*next)->memory).overlaps(addresses_of(region)))
            return;
        regions_.insert(next, std::move(added));
    } catch (const std::bad_alloc&) {  // stays pageable
    }
}

void AdaptivePins::remove_region(driver::Memory region) noexcept {
    std::unique_ptr<Region> removed;
    {
        const Lock lock(mutex_);
        const auto found = find(region.address.value);
        if (found == regions_.end() || (*found)->memory.address != region.address)
            return;
        Region* const known = found->get();
        std::erase_if(requests_, [&](const Request& request) { return request.region == known; });
        while (known->is_changing)
            changed_.wait(mutex_);
        const auto at = find(region.address.value);
        removed = std::move(*at);
        regions_.erase(at);
        for (const Piece& piece : removed->pieces)
            bytes_ -= piece.memory.size;
        if (is_forked_)
            return;
    }
    for (const Piece& piece : removed->pieces)
        for (driver::HostRegions* const device : piece.devices)
            device->remove(bytes_of(piece.memory));
}

void AdaptivePins::visit_pageable(driver::Memory range, void (*f)(void*, driver::Memory), void* caller) {
    const ByteRange all = addresses_of(range);
    const auto found = find(all.begin);
    if (found == regions_.end() || (*found)->granules.empty() || !addresses_of((*found)->memory).overlaps(all)) {
        f(caller, range);
        return;
    }
    const Region& region = **found;
    const uint64_t first = granule_of(region.memory.address.value);
    for (uint64_t at = all.begin; at < all.end;) {
        const auto is_pageable = [&](uint64_t address) {
            const uint64_t index = granule_of(address) - first;
            return index >= region.granules.size() || region.granules[index].state != State::registered;
        };
        const bool pageable = is_pageable(at);
        uint64_t end = at;
        do
            end = std::min(all.end, (granule_of(end) + 1) * granule_bytes);
        while (end < all.end && is_pageable(end) == pageable);
        if (pageable)
            f(caller, {DeviceAddress{at}, end - at});
        at = end;
    }
}

bool AdaptivePins::has_registered(driver::Memory region) {
    if (!has_devices())
        return false;
    const Lock lock(mutex_);
    const auto found = find(region.address.value);
    return found != regions_.end() && addresses_of((*found)->memory).overlaps(addresses_of(region)) &&
           !(*found)->pieces.empty();
}

// --- counting and deciding ---

void AdaptivePins::note_copy(driver::Memory range, uint64_t bytes, uint64_t times) noexcept {
    if (!has_devices() || bytes < copy_bytes_min)
        return;
    const ByteRange copied = addresses_of(range);
    try {
        const Lock lock(mutex_);
        const auto found = find(copied.begin);
        if (is_forked_ || found == regions_.end() || !addresses_of((*found)->memory).contains(copied))
            return;
        if (count(**found, copied, bytes * times))
            request(**found, copied);
    } catch (const std::bad_alloc&) {  // stays pageable
    }
}

// True when some of the granules of `range` are to be registered.
bool AdaptivePins::count(Region& region, ByteRange range, uint64_t bytes) {
    const uint64_t first_of_region = granule_of(region.memory.address.value);
    if (region.granules.empty())
        region.granules.resize(granule_of(addresses_of(region.memory).end - 1) - first_of_region + 1);
    uint64_t copied = 0;
    uint64_t size = 0;
    bool is_pageable = false;
    for (uint64_t at = range.begin; at < range.end;) {
        const uint64_t granule = granule_of(at);
        const uint64_t end = std::min(range.end, (granule + 1) * granule_bytes);
        Granule& counted = region.granules[granule - first_of_region];
        // For rows with gaps, the copied bytes are distributed evenly over the range.
        counted.copied_bytes += static_cast<uint64_t>(static_cast<double>(end - at) * static_cast<double>(bytes) /
                                                      static_cast<double>(range.size()));
        copied += counted.copied_bytes;
        const ByteRange whole{granule * granule_bytes, (granule + 1) * granule_bytes};
        size += whole.intersect(addresses_of(region.memory)).size();
        is_pageable = is_pageable || counted.state == State::pageable;
        at = end;
    }
    return is_pageable && copied >= copies_max * size;
}

void AdaptivePins::request(Region& region, ByteRange range) {
    const uint64_t first_of_region = granule_of(region.memory.address.value);
    const uint64_t end = granule_of(range.end - 1) + 1;
    for (uint64_t at = granule_of(range.begin); at < end;) {
        const auto is_pageable = [&](uint64_t granule) {
            return region.granules[granule - first_of_region].state == State::pageable;
        };
        const uint64_t first = at++;
        if (!is_pageable(first))
            continue;
        while (at < end && is_pageable(at) && (at - first) * granule_bytes < piece_bytes_max)
            ++at;
        const ByteRange piece =
            ByteRange{first * granule_bytes, at * granule_bytes}.intersect(addresses_of(region.memory));
        if (refusals_ >= refusals_max || bytes_ + piece.size() > bytes_max_)
            return;
        region.pieces.push_back({{DeviceAddress{piece.begin}, piece.size()}, {}});
        requests_.push_back({&region, region.pieces.size() - 1});
        if (!start_thread()) {
            requests_.pop_back();
            region.pieces.pop_back();
            refusals_ = refusals_max;
            return;
        }
        bytes_ += piece.size();
        set_state(region, region.pieces.back().memory, State::registered);
    }
}

void AdaptivePins::set_state(Region& region, driver::Memory piece, State state) {
    const uint64_t first_of_region = granule_of(region.memory.address.value);
    const ByteRange range = addresses_of(piece);
    for (uint64_t granule = granule_of(range.begin); granule <= granule_of(range.end - 1); ++granule)
        region.granules[granule - first_of_region].state = state;
}

bool AdaptivePins::start_thread() {
    const bool is_started = thread_.start(
        "polder-pins",
        [](void* self) -> void* {
            static_cast<AdaptivePins*>(self)->work();
            return nullptr;
        },
        this);
    if (!is_started)
        POLDER_LOG(memory, "host memory stays pageable: no thread can be started");
    changed_.notify_all();
    return is_started;
}

// --- registering ---

void AdaptivePins::work() {
    const Lock lock(mutex_);
    while (!is_stopping_) {
        if (requests_.empty()) {
            is_working_ = false;
            changed_.notify_all();
            changed_.wait(mutex_);
            continue;
        }
        is_working_ = true;
        const Request next = requests_.front();
        requests_.pop_front();
        next.region->is_changing = true;
        try {
            process(*next.region, next.piece);
        } catch (const std::bad_alloc&) {
            POLDER_LOG(memory, "host memory stays pageable for lack of memory");
        }
        next.region->is_changing = false;
        changed_.notify_all();
    }
}

void AdaptivePins::process(Region& region, size_t index) {
    const driver::Memory memory = region.pieces[index].memory;
    const std::vector<driver::HostRegions*> devices = devices_;
    for (driver::HostRegions* const device : devices) {
        // Found anew each time, because other pieces may be added while the driver is called without the lock.
        const auto having = [&]() -> std::vector<driver::HostRegions*>& { return region.pieces[index].devices; };
        if (std::ranges::find(having(), device) != having().end())
            continue;
        having().reserve(having().size() + 1);
        if (add_to(*device, memory))
            having().push_back(device);
    }
    if (!region.pieces[index].devices.empty())
        return;
    // Keeps the piece with a size of 0, because requests refer to pieces by number. Its pages may be discarded again.
    set_state(region, memory, State::refused);
    bytes_ -= std::exchange(region.pieces[index].memory.size, 0);
}

bool AdaptivePins::add_to(driver::HostRegions& device, driver::Memory memory) {
    std::string reason = "no memory";
    bool is_added = false;
    mutex_.unlock();
    try {
        const Result<void> added = device.add(bytes_of(memory));
        is_added = added.has_value();
        if (!added)
            reason = added.error().detail();
    } catch (const std::bad_alloc&) {  // counts as refused
    }
    mutex_.lock();
    if (is_added) {
        POLDER_LOG(memory, "%llu bytes of host memory at 0x%llx are registered with a device", llu(memory.size),
                   llu(memory.address.value));
        return true;
    }
    ++refusals_;
    POLDER_LOG(memory, "%llu bytes of host memory at 0x%llx stay pageable: %s", llu(memory.size),
               llu(memory.address.value), reason.c_str());
    return false;
}

void AdaptivePins::wait_until_idle() {
    const Lock lock(mutex_);
    while (!requests_.empty() || is_working_)
        changed_.wait(mutex_);
}

// --- the child of a fork ---

// The devices are lost in the child, and the thread may have been in a call of a driver: so no function of a device is called any more.
void AdaptivePins::forget_threads() POLDER_NO_THREAD_SAFETY_ANALYSIS {
    is_forked_ = true;
    has_devices_.store(false, std::memory_order_relaxed);
    thread_.forget();
    new (&changed_) ConditionVariable;
    requests_.clear();
    is_working_ = false;
    for (const std::unique_ptr<Region>& region : regions_)
        region->is_changing = false;
}

// --- the source ---

Result<driver::Memory> AdaptiveRegionSource::reserve(ByteCount size) {
    Result<driver::Memory> memory = host_.reserve(size);
    if (memory)
        pins_.add_region(*memory);
    return memory;
}

void AdaptiveRegionSource::release(driver::Memory memory) {
    pins_.remove_region(memory);
    host_.release(memory);
}

void AdaptiveRegionSource::discard(driver::Memory range) {
    pins_.for_each_pageable(range, [&](driver::Memory part) { host_.discard(part); });
}

}  // namespace polder::memory
