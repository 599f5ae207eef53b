// One map from addresses to blocks for all devices, with one lock. An allocation takes a kept block (blocks.h), or a new one from the
// implementation; when that fails, unused memory is given back and it is tried once more. The addressing of the platform decides how a block
// is made and copied: unified shared memory, a buffer with an address, or a buffer whose address is only a name.
#include "memory.h"

#include "blocks.h"

#include <algorithm>
#include <atomic>
#include <c10/util/Exception.h>
#include <c10/util/flat_hash_map.h>
#include <deque>
#include <map>
#include <sys/mman.h>

namespace torch_opencl {
namespace {

// A released block, and markers of the streams that may use it.
struct Deferred {
    Block block;
    std::vector<Event> users;
};

// Pinned host memory: allocated by the implementation, or by this package (`is_ours`).
struct Pinned {
    size_t bytes = 0;
    bool is_ours = false;
};

struct Heap {
    std::mutex mutex;
    std::map<uint64_t, Block> blocks;  // live ones and kept ones
    ska::flat_hash_map<uint64_t, Block*> by_address;  // the same blocks
    std::vector<BlockCache> caches = std::vector<BlockCache>(Platform::get().devices().size());
    std::deque<Deferred> deferred;
    std::vector<MemoryCounts> counts = std::vector<MemoryCounts>(Platform::get().devices().size());
    std::vector<size_t> bytes_max = std::vector<size_t>(Platform::get().devices().size(), SIZE_MAX);
    std::map<uint64_t, Pinned> pinned;
    PinnedCounts pinned_counts;

    // The block that contains `address`, or the end.
    std::map<uint64_t, Block>::iterator find(uint64_t address) {
        auto after = blocks.upper_bound(address);
        if (after == blocks.begin())
            return blocks.end();
        const auto found = std::prev(after);
        return !found->second.is_kept && address - found->first < found->second.bytes ? found : blocks.end();
    }
    // The live block that begins at `address`, or null.
    Block* at(uint64_t address) {
        const auto found = by_address.find(address);
        return found == by_address.end() || found->second->is_kept ? nullptr : found->second;
    }
};

Heap& heap() {
    static auto* const it = new Heap;
    return *it;
}

uint64_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }
void* pointer(uint64_t address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); }

struct Made {
    uint64_t address = 0;
    cl_mem buffer = nullptr;
    cl_int error = CL_SUCCESS;
};

Made make_buffer(const Device& device, size_t bytes) {
    static constexpr cl_mem_properties properties[] = {CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT, CL_TRUE, 0};
    Made made;
    made.buffer =
        clCreateBufferWithProperties(device.context, properties, CL_MEM_READ_WRITE, bytes, nullptr, &made.error);
    if (made.buffer) {
        cl_mem_device_address_ext address = 0;
        made.error = clGetMemObjectInfo(made.buffer, CL_MEM_DEVICE_ADDRESS_EXT, sizeof(address), &address, nullptr);
        made.address = address;
    }
    return made;
}

// A buffer whose address is only a name: address space that is reserved in the process, so that it is unique, but has no memory.
Made make_named_buffer(const Device& device, size_t bytes) {
    Made made;
    void* const name = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (name == MAP_FAILED) {
        made.error = CL_OUT_OF_HOST_MEMORY;
        return made;
    }
    made.buffer = clCreateBuffer(device.context, CL_MEM_READ_WRITE, bytes, nullptr, &made.error);
    if (made.buffer)
        made.address = number(name);
    else
        munmap(name, bytes);
    return made;
}

Made make(const Device& device, size_t bytes) {
    if (Platform::get().addressing() == Addressing::buffers)
        return make_buffer(device, bytes);
    if (Platform::get().addressing() == Addressing::none)
        return make_named_buffer(device, bytes);
    Made made;
    made.address =
        number(Platform::get().functions().device_alloc(device.context, device.id, nullptr, bytes, 0, &made.error));
    return made;
}

void release(const Block& block) {
    if (block.buffer)
        clReleaseMemObject(block.buffer);  // commands hold a reference
    if (Platform::get().addressing() == Addressing::none)
        munmap(pointer(block.address), block.capacity);
    else if (!block.buffer)
        Platform::get().functions().free(Platform::get().device(block.device).context, pointer(block.address));
}

void reset(Counts& counts, bool peaks) {
    if (peaks)
        counts.peak = counts.current;
    else
        counts.added = counts.removed = 0;
}

// Releases deferred blocks that commands no longer use. The caller holds the heap's lock, as for the next two functions.
void collect(Heap& all) {
    while (!all.deferred.empty()) {
        Deferred& first = all.deferred.front();
        if (!std::all_of(first.users.begin(), first.users.end(),
                         [](const Event& event) { return event.is_complete(); }))
            return;
        release(first.block);
        all.deferred.pop_front();
    }
}

// Gives a block back to the implementation, at once or when its commands are complete.
void give_back(Heap& all, Block& given) {
    Block block = std::move(given);
    all.counts[static_cast<size_t>(block.device)].from_implementation.remove(1);
    all.by_address.erase(block.address);
    all.blocks.erase(block.address);
    if (Platform::get().orders_releases())
        return release(block);
    for (cl_command_queue queue : queues_of(block.device))
        block.users.push_back(queue);
    Deferred deferred{std::move(block), {}};
    for (cl_command_queue queue : deferred.block.users)
        deferred.users.push_back(record(queue));
    all.deferred.push_back(std::move(deferred));
}

void give_kept_back(Heap& all, int device) {
    while (Block* const block = all.caches[static_cast<size_t>(device)].take_any())
        give_back(all, *block);
}

// The most bytes that a device's cache may keep: few, because the implementation cannot use them for anything else.
size_t kept_bytes_max(const Device& device) { return std::min<size_t>(device.memory_bytes / 64, 32 << 20); }

void* count_in(MemoryCounts& counts, Block& block, size_t bytes) {
    block.bytes = bytes;
    counts.allocations.add(1);
    counts.requested.add(static_cast<int64_t>(bytes));
    return pointer(block.address);
}

[[noreturn]] void throw_out_of_memory(const Device& device, size_t bytes, const std::string& reason) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "opencl out of memory: tried to allocate ", bytes,
                     " bytes on opencl:", device.index, " (", device.name, ", ", device.memory_bytes,
                     " bytes): ", reason);
}

std::string reason_of(cl_int error) {
    const std::string report = Platform::take_report();
    return error_name(error) + (report.empty() ? "" : ": " + report);
}

// Whether a limit that set_memory_fraction made allows `bytes` more.
bool has_room(const Heap& all, int device, size_t bytes) {
    const auto place = static_cast<size_t>(device);
    const auto used = static_cast<size_t>(all.counts[place].requested.current);
    return bytes <= all.bytes_max[place] && used <= all.bytes_max[place] - bytes;
}

// The second attempt of an allocation, after all unused memory was given back. The caller does not hold the heap's lock.
Made make_after_giving_back(Heap& all, const Device& device, size_t capacity, const Made& failed) {
    const bool is_ordered = Platform::get().orders_releases();
    {
        const std::lock_guard lock(all.mutex);
        if (is_ordered && all.caches[static_cast<size_t>(device.index)].bytes() == 0)
            return failed;
        ++all.counts[static_cast<size_t>(device.index)].retries;
        give_kept_back(all, device.index);
    }
    if (!is_ordered) {
        synchronize_device(device.index);
        const std::lock_guard lock(all.mutex);
        collect(all);
    }
    return make(device, capacity);
}

std::atomic<uint64_t> host_copy_count{0};

bool is_unified() { return Platform::get().addressing() == Addressing::unified; }

void copy_unified(cl_command_queue queue, void* target, const void* source, size_t bytes, Wait wait) {
    check(Platform::get().functions().copy(queue, wait == Wait::yes, target, source, bytes, 0, nullptr, nullptr),
          "clEnqueueMemcpyINTEL");
}

}  // namespace

void* allocate_memory(int index, size_t bytes) {
    const Device& device = Platform::get().device(index);
    TORCH_CHECK(!is_in_bad_fork(), "opencl: devices were used before fork; use the 'spawn' start method");
    Heap& all = heap();
    MemoryCounts& counts = all.counts[static_cast<size_t>(index)];
    const size_t capacity = BlockCache::capacity_for(bytes);
    {
        const std::lock_guard lock(all.mutex);
        if (!has_room(all, index, bytes)) {
            ++counts.out_of_memory;
            throw_out_of_memory(device, bytes,
                                "torch.opencl.set_per_process_memory_fraction allows " +
                                    std::to_string(all.bytes_max[static_cast<size_t>(index)]) +
                                    " bytes, and tensors take " + std::to_string(counts.requested.current));
        }
        if (uses_default_stream_alone(index)) {
            if (Block* const kept = all.caches[static_cast<size_t>(index)].take(capacity))
                return count_in(counts, *kept, bytes);
        } else {
            give_kept_back(all, index);
        }
        if (!all.deferred.empty())
            collect(all);
    }
    Made made = make(device, capacity);
    if (!made.address)
        made = make_after_giving_back(all, device, capacity, made);
    const std::lock_guard lock(all.mutex);
    if (!made.address) {
        ++counts.out_of_memory;
        throw_out_of_memory(device, bytes, reason_of(made.error));
    }
    Block& block = all.blocks[made.address];
    block.address = made.address;
    block.capacity = capacity;
    block.device = index;
    block.buffer = made.buffer;
    counts.from_implementation.add(1);
    all.by_address[made.address] = &block;
    return count_in(counts, block, bytes);
}

void free_memory(void* address) noexcept {
    if (!address || is_in_bad_fork())
        return;
    Heap& all = heap();
    const std::lock_guard lock(all.mutex);
    Block* const block = all.at(number(address));
    if (!block)
        return;
    MemoryCounts& counts = all.counts[static_cast<size_t>(block->device)];
    counts.allocations.remove(1);
    counts.requested.remove(static_cast<int64_t>(block->bytes));
    if (!BlockCache::may_keep(*block) || !uses_default_stream_alone(block->device))
        return give_back(all, *block);
    BlockCache& cache = all.caches[static_cast<size_t>(block->device)];
    const size_t bytes_max = kept_bytes_max(Platform::get().devices()[static_cast<size_t>(block->device)]);
    // A full cache is emptied, so that it does not fill with sizes that are no longer in use.
    if (cache.bytes() + block->capacity > bytes_max)
        give_kept_back(all, block->device);
    if (!cache.keep(*block, bytes_max))
        give_back(all, *block);
}

Place place_of(const void* address) {
    Heap& all = heap();
    const std::lock_guard lock(all.mutex);
    const auto found = all.find(number(address));
    if (found == all.blocks.end())
        return {};
    return {found->second.buffer, static_cast<size_t>(number(address) - found->first)};
}

int device_of_address(const void* address) {
    Heap& all = heap();
    const std::lock_guard lock(all.mutex);
    const auto found = all.find(number(address));
    return found == all.blocks.end() ? -1 : found->second.device;
}

void copy_from_host(int device, void* target, const void* source, size_t bytes, Wait wait) {
    host_copy_count.fetch_add(1, std::memory_order_relaxed);
    cl_command_queue queue = current_queue(device);
    if (is_unified())
        return copy_unified(queue, target, source, bytes, wait);
    const Place to = place_of(target);
    check(clEnqueueWriteBuffer(queue, to.buffer, wait == Wait::yes, to.offset, bytes, source, 0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
}

void copy_to_host(int device, void* target, const void* source, size_t bytes, Wait wait) {
    host_copy_count.fetch_add(1, std::memory_order_relaxed);
    cl_command_queue queue = current_queue(device);
    if (is_unified())
        return copy_unified(queue, target, source, bytes, wait);
    const Place from = place_of(source);
    check(clEnqueueReadBuffer(queue, from.buffer, wait == Wait::yes, from.offset, bytes, target, 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
}

void copy_on_device(int device, void* target, const void* source, size_t bytes) {
    cl_command_queue queue = current_queue(device);
    if (is_unified())
        return copy_unified(queue, target, source, bytes, Wait::no);
    const Place to = place_of(target);
    const Place from = place_of(source);
    check(clEnqueueCopyBuffer(queue, from.buffer, to.buffer, from.offset, to.offset, bytes, 0, nullptr, nullptr),
          "clEnqueueCopyBuffer");
}

void copy_between(int target_device, void* target, int source_device, const void* source, size_t bytes) {
    cl_command_queue queue = current_queue(target_device);
    if (Platform::get().addressing() == Addressing::buffers) {
        std::vector<char> staging(bytes);
        copy_to_host(source_device, staging.data(), source, bytes, Wait::yes);
        return copy_from_host(target_device, target, staging.data(), bytes, Wait::yes);
    }
    cl_command_queue source_queue = current_queue(source_device);
    block(queue, record(source_queue));
    copy_on_device(target_device, target, source, bytes);
    // The next command on the source's stream may overwrite the source, so that stream waits for the copy.
    block(source_queue, record(queue));
}

uint64_t host_copies() { return host_copy_count.load(std::memory_order_relaxed); }

void trim_memory() {
    Heap& all = heap();
    {
        const std::lock_guard lock(all.mutex);
        for (const Device& device : Platform::get().devices())
            give_kept_back(all, device.index);
        collect(all);
    }
    const Functions& functions = Platform::get().functions();
    if (!functions.trim)
        return;
    cl_context done = nullptr;
    for (const Device& device : Platform::get().devices())
        if (device.context != std::exchange(done, device.context))
            check(functions.trim(device.context, CL_MEMORY_SPACE_ALL_POLDER), "clTrimMemoryPOLDER");
}

void use_on_stream(const void* address, cl_command_queue queue) {
    if (Platform::get().orders_releases())
        return;
    Heap& all = heap();
    const std::lock_guard lock(all.mutex);
    const auto found = all.find(number(address));
    if (found != all.blocks.end())
        found->second.users.push_back(queue);
}

MemoryCounts memory_counts(int device) {
    static_cast<void>(Platform::get().device(device));
    const std::lock_guard lock(heap().mutex);
    return heap().counts[static_cast<size_t>(device)];
}

void reset_counts(int device, bool peaks) {
    static_cast<void>(Platform::get().device(device));
    const std::lock_guard lock(heap().mutex);
    MemoryCounts& counts = heap().counts[static_cast<size_t>(device)];
    for (Counts* each : {&counts.allocations, &counts.requested, &counts.from_implementation})
        reset(*each, peaks);
    if (!peaks)
        counts.out_of_memory = counts.retries = 0;
}

std::vector<LiveBlock> live_blocks(int device) {
    static_cast<void>(Platform::get().device(device));
    std::vector<LiveBlock> found;
    const std::lock_guard lock(heap().mutex);
    for (const auto& [address, block] : heap().blocks)
        if (block.device == device && !block.is_kept)
            found.push_back({address, block.bytes});
    return found;
}

void set_memory_fraction(int index, double fraction) {
    const Device& device = Platform::get().device(index);
    TORCH_CHECK_VALUE(fraction >= 0 && fraction <= 1, "opencl: a memory fraction is from 0 to 1, not ", fraction);
    const std::lock_guard lock(heap().mutex);
    heap().bytes_max[static_cast<size_t>(index)] =
        fraction == 1 ? SIZE_MAX : static_cast<size_t>(static_cast<double>(device.memory_bytes) * fraction);
}

bool implementation_statistics(int index, cl_memory_statistics_polder* statistics) {
    const Device& device = Platform::get().device(index);
    const Functions& functions = Platform::get().functions();
    cl_uint count = 0;
    if (!functions.statistics || functions.statistics(device.context, 0, nullptr, &count) != CL_SUCCESS)
        return false;
    std::vector<cl_memory_statistics_polder> spaces(count);
    check(functions.statistics(device.context, count, spaces.data(), &count), "clGetMemoryStatisticsPOLDER");
    for (const cl_memory_statistics_polder& each : spaces)
        if (each.space == device.space) {
            *statistics = each;
            return true;
        }
    return false;
}

void* allocate_pinned(size_t bytes) {
    const Functions& functions = Platform::get().functions();
    void* address = nullptr;
    cl_int error = CL_SUCCESS;
    if (is_unified() && functions.host_alloc && !Platform::get().devices().empty())
        address = functions.host_alloc(Platform::get().devices()[0].context, nullptr, bytes, 0, &error);
    const bool is_ours = !address;
    if (is_ours)  // a platform whose devices do not share the host's memory: page-aligned memory is the best there is
        address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    TORCH_CHECK_WITH(OutOfMemoryError, address != nullptr, "opencl: no pinned memory of ", bytes, " bytes");
    Heap& all = heap();
    const std::lock_guard lock(all.mutex);
    all.pinned.emplace(number(address), Pinned{bytes, is_ours});
    all.pinned_counts.allocations.add(1);
    all.pinned_counts.requested.add(static_cast<int64_t>(bytes));
    return address;
}

void free_pinned(void* address) noexcept {
    Heap& all = heap();
    Pinned pinned;
    {
        const std::lock_guard lock(all.mutex);
        const auto found = all.pinned.find(number(address));
        if (found == all.pinned.end())
            return;
        pinned = found->second;
        all.pinned.erase(found);
        all.pinned_counts.allocations.remove(1);
        all.pinned_counts.requested.remove(static_cast<int64_t>(pinned.bytes));
    }
    if (is_in_bad_fork())
        return;
    const Functions& functions = Platform::get().functions();
    if (!pinned.is_ours) {
        const cl_context context = Platform::get().devices()[0].context;
        if (Platform::get().orders_releases())
            functions.free(context, address);
        else
            functions.blocking_free(context, address);
        return;
    }
    // Copies in flight may still use the memory.
    for (const Device& device : Platform::get().devices())
        for (cl_command_queue queue : queues_of(device.index))
            clFinish(queue);
    std::free(address);
}

bool is_pinned(const void* address) {
    if (!Platform::is_initialized())
        return false;
    Heap& all = heap();
    const std::lock_guard lock(all.mutex);
    auto after = all.pinned.upper_bound(number(address));
    if (after == all.pinned.begin())
        return false;
    --after;
    return number(address) - after->first < after->second.bytes;
}

PinnedCounts pinned_counts() {
    const std::lock_guard lock(heap().mutex);
    return heap().pinned_counts;
}

void reset_pinned_counts(bool peaks) {
    const std::lock_guard lock(heap().mutex);
    reset(heap().pinned_counts.allocations, peaks);
    reset(heap().pinned_counts.requested, peaks);
}

}  // namespace torch_opencl
