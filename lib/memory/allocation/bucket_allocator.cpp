// Without waiting, a lease takes a pending block that only the request's queue uses, or a free block of the bucket (`take`). With the
// turn (`climb`) it tries, in order: blocks whose commands are complete, a new slab, a new slab after unused ones were released,
// a larger block, a pending block of another queue, waiting.
#include <base/log.h>
#include <base/scope_exit.h>
#include <memory/bucket_allocator.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <cinttypes>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace polder::memory {
namespace {

// Smaller blocks share slabs of this size.
constexpr uint64_t slab_bytes_min = uint64_t{1} << 20;

uint64_t bound_of(const AllocationPolicy& policy, const RegionSource& source, const AllocatorOptions& options) {
    if (policy.persistent)
        return AllocationPolicy::unlimited;
    if (policy.max_bytes)
        return policy.max_bytes->value;
    return source.discards() ? options.cache_max.value : AllocationPolicy::unlimited;
}

uint64_t clock_ticks() {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

}  // namespace

BucketAllocator::BucketAllocator(std::unique_ptr<RegionSource> source, const AllocationPolicy& policy,
                                 const AllocatorOptions& options)
    : TurnAllocator(std::move(source), options, Tally::Writers::many), max_bytes_(bound_of(policy, *source_, options)),
      is_persistent_(policy.persistent) {
    for (uint32_t number = 0; number < bucket_count; ++number)
        buckets_[number].number = number;
}

BucketAllocator::~BucketAllocator() {
    for (const Bucket& bucket : buckets_)
        for (const Slab& slab : bucket.slabs)
            if (slab.memory.size != 0)
                source_->release(slab.memory);
}

uint32_t BucketAllocator::bucket_of(const Request& request) const {
    uint64_t size = std::max({request.asked.value, options_.granularity.value, block_bytes(0)});
    if (request.alignment > options_.granularity) {
        const uint64_t padded = size + (request.alignment.value - options_.granularity.value);
        size = std::max(size, padded);
    }
    const auto log2 = static_cast<uint32_t>(std::bit_width(size - 1));
    return std::min(log2, 63u) - first_log2;
}

// ---- lists ----

template <class Elements>
void BucketAllocator::link(List& list, Elements& elements, Index index) noexcept {
    elements[index].older = list.newest;
    elements[index].newer = none;
    (list.newest != none ? elements[list.newest].newer : list.oldest) = index;
    list.newest = index;
}

template <class Elements>
void BucketAllocator::unlink(List& list, Elements& elements, Index index) noexcept {
    const Index newer = elements[index].newer;
    const Index older = elements[index].older;
    (newer != none ? elements[newer].older : list.newest) = older;
    (older != none ? elements[older].newer : list.oldest) = newer;
}

// ---- leasing ----

bool BucketAllocator::lease_now(const Request& request, Lease& leased) {
    const uint32_t number = bucket_of(request);
    return request.asked.value <= block_bytes(number) && take(number, request, leased);
}

// Takes a pending block that only the request's queue still uses, otherwise a free block.
bool BucketAllocator::take(uint32_t number, const Request& request, Lease& leased) {
    Bucket& bucket = buckets_[number];
    BiasedLock lock(bucket.mutex);
    if (bucket.pending.size() != 0) {
        drain_at_most(bucket, drained_at_most);
        if (request.terms.consumer == LeaseTerms::Consumer::device && request.terms.queue) {
            if (auto found = bucket.pending.take_of(request.terms.queue, [](const Block&) { return true; })) {
                leased = std::move(*found);
                tally_.reuse_deferred(block_bytes(number));
                ++bucket.hits;
                hand_out(bucket, leased.block.place.node, request, leased);
                return true;
            }
        }
    }
    if (!take_free(bucket, request, leased))
        return false;
    ++bucket.hits;
    return true;
}

bool BucketAllocator::take_free(Bucket& bucket, const Request& request, Lease& leased) {
    const Index index = bucket.free.newest;
    if (index == none || !tally_.allocate(block_bytes(bucket.number)))
        return false;
    unlink(bucket.free, bucket.records, index);
    --bucket.free_blocks;
    const Index slab = bucket.records[index].slab;
    if (bucket.used[slab]++ == 0) {
        unlink(bucket.unused, bucket.slabs, slab);
        bucket.unused_bytes -= bucket.slabs[slab].memory.size;
        note_oldest(bucket);
    }
    leased.after.clear();
    hand_out(bucket, index, request, leased);
    return true;
}

void BucketAllocator::hand_out(Bucket& bucket, Index index, const Request& request, Lease& leased) {
    Record& record = bucket.records[index];
    ++record.generation;
    leased.is_fresh = false;
    leased.block = {DeviceAddress{request.alignment.round_up(record.address.value)}, request.asked, bucket.number,
                    RegionAllocator::Block{record.generation, ByteCount{block_bytes(bucket.number)}, index}};
    log_allocation(request, leased);
}

Result<void> BucketAllocator::climb(const Request& request, Lease& leased) {
    for (Ladder ladder;; ++ladder.waited) {
        drain_all();
        bool is_retry = ladder.waited != 0;
        if (request.asked.value <= block_bytes(bucket_of(request)) && try_steps(request, ladder, is_retry, leased)) {
            if (is_retry)
                tally_.count_retry();
            return {};
        }
        std::optional<driver::Timepoint> pending;
        if (request.terms.when_full == WhenFull::wait)
            pending = oldest_pending();
        if (!pending)
            return fail(out_of_memory(request, ladder));
        pending->queue->wait(pending->value);
    }
}

// Notes when memory was given back, or the consumer waits.
bool BucketAllocator::try_steps(const Request& request, Ladder& ladder, bool& is_retry, Lease& leased) {
    const uint32_t number = bucket_of(request);
    if (take(number, request, leased))
        return true;
    if (tally_.allows(block_bytes(number))) {
        if (grow(number, request, ladder, leased))
            return true;
        is_retry = true;
        ladder.released_bytes += give_back_beyond(0);
        if ((ladder.released_bytes != 0 && grow(number, request, ladder, leased)) ||
            take_larger(number, request, leased))
            return true;
    }
    is_retry = true;
    return take_pending(number, request, leased);
}

// When the source has no more memory, a larger block is used.
bool BucketAllocator::take_larger(uint32_t number, const Request& request, Lease& leased) {
    for (uint32_t larger = number + 1; larger < bucket_count; ++larger) {
        Bucket& bucket = buckets_[larger];
        BiasedLock lock(bucket.mutex);
        if (take_free(bucket, request, leased))
            return true;
    }
    return false;
}

// Takes a pending block of another queue. The consumer's queue waits for it on the device.
bool BucketAllocator::take_pending(uint32_t number, const Request& request, Lease& leased) {
    if (request.terms.consumer == LeaseTerms::Consumer::host)
        return false;
    for (uint32_t larger = number; larger < bucket_count; ++larger) {
        Bucket& bucket = buckets_[larger];
        BiasedLock lock(bucket.mutex);
        auto found = bucket.pending.take_any([](const Block&) { return true; });
        if (!found)
            continue;
        leased = std::move(*found);
        tally_.reuse_deferred(block_bytes(larger));
        hand_out(bucket, leased.block.place.node, request, leased);
        return true;
    }
    return false;
}

// ---- slabs ----

bool BucketAllocator::grow(uint32_t number, const Request& request, Ladder& ladder, Lease& leased) {
    const uint64_t block = block_bytes(number);
    const uint64_t shared = std::max(block, slab_bytes_min);
    return grow_by(shared, number, request, ladder, leased) ||
           (shared != block && grow_by(block, number, request, ladder, leased));
}

bool BucketAllocator::grow_by(uint64_t bytes, uint32_t number, const Request& request, Ladder& ladder, Lease& leased) {
    const auto memory = reserve(ByteCount{bytes}, ladder);
    if (!memory)
        return false;
    bool is_added = false;
    const ScopeExit give_back{[&]() noexcept {
        if (is_added)
            return;
        source_->release(*memory);
        tally_.release(memory->size);
    }};
    Bucket& bucket = buckets_[number];
    BiasedLock lock(bucket.mutex);
    add_slab(bucket, *memory);
    is_added = true;
    ++bucket.misses;
    return take_free(bucket, request, leased);
}

void BucketAllocator::add_slab(Bucket& bucket, driver::Memory memory) {
    const uint64_t blocks = memory.size >> (bucket.number + first_log2);
    bucket.pending.provide(bucket.records.size() + blocks);
    bucket.spare_records.reserve(bucket.records.size() + blocks);
    bucket.spare_slabs.reserve(bucket.slabs.size() + 1);
    if (bucket.spare_slabs.empty()) {
        if (bucket.used.size() == bucket.slabs.size())
            bucket.used.append();
        bucket.slabs.emplace_back();
        bucket.spare_slabs.push_back(static_cast<Index>(bucket.slabs.size() - 1));
    }
    Slab& slab = bucket.slabs[bucket.spare_slabs.back()];
    slab.records.reserve(blocks);
    while (bucket.spare_records.size() < blocks) {
        bucket.records.append();
        bucket.spare_records.push_back(static_cast<Index>(bucket.records.size() - 1));
    }
    // From here on nothing fails.
    const Index number_of_slab = bucket.spare_slabs.back();
    bucket.spare_slabs.pop_back();
    slab.memory = memory;
    bucket.used[number_of_slab] = 0;
    slab.unused_since = moment();
    // In descending order, so that the first block becomes the newest free block.
    for (uint64_t block = blocks; block-- > 0;) {
        const Index index = bucket.spare_records.back();
        bucket.spare_records.pop_back();
        Record& record = bucket.records[index];
        record.address = memory.address.plus(block << (bucket.number + first_log2));
        record.slab = number_of_slab;
        slab.records.push_back(index);
        link(bucket.free, bucket.records, index);
    }
    bucket.free_blocks += blocks;
    ++bucket.slab_count;
    link(bucket.unused, bucket.slabs, number_of_slab);
    bucket.unused_bytes += memory.size;
    note_oldest(bucket);
}

// A time, for the order in which slabs became unused. It is a clock, because all threads would write to a counter. Reading the clock takes a
// tenth of a lease and free. Without a bound no slab is released alone, so that their order does not matter.
uint64_t BucketAllocator::moment() const noexcept {
    return max_bytes_ == AllocationPolicy::unlimited ? 0 : clock_ticks();
}

void BucketAllocator::note_oldest(Bucket& bucket) noexcept {
    const Index oldest = bucket.unused.oldest;
    bucket.oldest_unused.store(oldest == none ? UINT64_MAX : bucket.slabs[oldest].unused_since,
                               std::memory_order_relaxed);
}

// ---- freeing ----

void BucketAllocator::free_after(const Block& block, Timepoints&& after) noexcept {
    drop_complete(after);
    POLDER_LOG(memory, "space %u: free %" PRIu64 " bytes at 0x%" PRIx64 "%s", options_.space.value, block.size.value,
               block.address.value, after.empty() ? "" : " when its uses are complete");
    Bucket& bucket = buckets_[block.region];
    {
        BiasedLock lock(bucket.mutex);
        Record& record = bucket.records[block.place.node];
        if (record.generation != block.place.offset) {
            ++bucket.stale_frees;
            return;
        }
        ++record.generation;
        if (!after.empty()) {
            tally_.defer(block_bytes(block.region));
            bucket.pending.add(block, std::move(after));
            bucket.may_have_pending.store(true, std::memory_order_relaxed);
            return;
        }
        tally_.free(block_bytes(block.region));
        put_free(bucket, block.place.node);
    }
    if (max_bytes_ != AllocationPolicy::unlimited && tally_.free_bytes_exceed(max_bytes_)) [[unlikely]]
        give_back_beyond(max_bytes_);
}

void BucketAllocator::put_free(Bucket& bucket, Index index) noexcept {
    link(bucket.free, bucket.records, index);
    ++bucket.free_blocks;
    const Index slab_index = bucket.records[index].slab;
    if (--bucket.used[slab_index] != 0)
        return;
    Slab& slab = bucket.slabs[slab_index];
    slab.unused_since = moment();
    link(bucket.unused, bucket.slabs, slab_index);
    bucket.unused_bytes += slab.memory.size;
    note_oldest(bucket);
}

uint32_t BucketAllocator::drain_at_most(Bucket& bucket, uint32_t count) {
    const uint32_t drained =
        bucket.pending.drain(count, [this, &bucket](const Block& block) POLDER_NO_THREAD_SAFETY_ANALYSIS {
            tally_.end_deferred(block_bytes(bucket.number));
            put_free(bucket, block.place.node);
        });
    bucket.may_have_pending.store(bucket.pending.size() != 0, std::memory_order_relaxed);
    return drained;
}

// Does not lock buckets without pending blocks: their locks may belong to other threads (BiasedMutex).
void BucketAllocator::drain_all() {
    for (Bucket& bucket : buckets_)
        if (bucket.may_have_pending.load(std::memory_order_relaxed))
            drain_in_parts(bucket.mutex,
                           [&]() POLDER_NO_THREAD_SAFETY_ANALYSIS { return drain_at_most(bucket, drained_at_most); });
}

void BucketAllocator::drain() {
    drain_all();
    if (tally_.free_bytes() > max_bytes_)
        give_back_beyond(max_bytes_);
}

std::optional<driver::Timepoint> BucketAllocator::oldest_pending() const {
    for (const Bucket& bucket : buckets_) {
        if (!bucket.may_have_pending.load(std::memory_order_relaxed))
            continue;
        BiasedLock lock(bucket.mutex);
        if (auto oldest = bucket.pending.oldest())
            return oldest;
    }
    return std::nullopt;
}

driver::Memory BucketAllocator::remove_oldest_unused(uint32_t number) noexcept {
    Bucket& bucket = buckets_[number];
    BiasedLock lock(bucket.mutex);
    const Index oldest = bucket.unused.oldest;
    if (oldest == none)
        return {};
    Slab& slab = bucket.slabs[oldest];
    unlink(bucket.unused, bucket.slabs, oldest);
    note_oldest(bucket);
    for (const Index index : slab.records) {
        unlink(bucket.free, bucket.records, index);
        bucket.spare_records.push_back(index);  // its capacity suffices for all records
    }
    bucket.free_blocks -= slab.records.size();
    --bucket.slab_count;
    slab.records.clear();
    bucket.unused_bytes -= slab.memory.size;
    bucket.spare_slabs.push_back(oldest);  // its capacity suffices for all slabs
    return std::exchange(slab.memory, {});
}

// Releases unused slabs, least recently used first, until at most `kept` bytes are free. Returns the released bytes.
uint64_t BucketAllocator::give_back_beyond(uint64_t kept) noexcept {
    uint64_t bytes = 0;
    while (tally_.free_bytes() > kept) {
        const auto since = [](const Bucket& bucket) { return bucket.oldest_unused.load(std::memory_order_relaxed); };
        const auto oldest = std::ranges::min_element(buckets_, {}, since);
        if (since(*oldest) == UINT64_MAX)
            break;
        const driver::Memory memory = remove_oldest_unused(static_cast<uint32_t>(oldest - buckets_.begin()));
        if (memory.size == 0)
            continue;  // another thread has released it
        POLDER_LOG(memory, "space %u: give back a region of %" PRIu64 " bytes at 0x%" PRIx64, options_.space.value,
                   memory.size, memory.address.value);
        source_->release(memory);
        tally_.release(memory.size);
        bytes += memory.size;
    }
    return bytes;
}

void BucketAllocator::trim() {
    if (is_persistent_)
        drain();
    else
        clear();
}

void BucketAllocator::clear() {
    drain_all();
    give_back_beyond(0);
}

// ---- statistics and validation ----

BucketAllocator::BucketStatistics BucketAllocator::bucket_statistics(ByteCount size) const {
    const uint32_t number = bucket_of({size, Alignment{1}, {}});
    const Bucket& bucket = buckets_[number];
    BiasedLock lock(bucket.mutex);
    return {block_bytes(number), bucket.hits,        bucket.misses,
            bucket.stale_frees,  bucket.free_blocks, lock.held() != BiasedMutex::Held::by_owner};
}

Allocator::Statistics BucketAllocator::statistics() const {
    Statistics sum;
    tally_.fill(sum);
    sum.hits = 0;
    uint64_t unused = 0;
    for (uint32_t number = 0; number < bucket_count; ++number) {
        const Bucket& bucket = buckets_[number];
        BiasedLock lock(bucket.mutex);
        sum.hits += bucket.hits;
        sum.free_blocks += bucket.free_blocks;
        sum.regions += bucket.slab_count;
        unused += bucket.unused_bytes;
        if (bucket.free_blocks != 0)
            sum.largest_free = ByteCount{block_bytes(number)};
    }
    sum.inactive_split = ByteCount{sum.free.value - std::min(sum.free.value, unused)};
    sum.cached = source_->discards() ? sum.free : ByteCount{0};
    return sum;
}

bool BucketAllocator::validate(const Bucket& bucket, uint64_t block_bytes, uint64_t& used_bytes) {
    uint64_t free_blocks = 0, used_blocks = 0, slabs = 0, unused_bytes = 0;
    for (Index index = bucket.free.newest; index != none; index = bucket.records[index].older) {
        if (bucket.records[index].generation % 2 != 0 || ++free_blocks > bucket.records.size())
            return false;
    }
    for (Index index = 0; index < bucket.slabs.size(); ++index) {
        const Slab& slab = bucket.slabs[index];
        slabs += slab.memory.size != 0 ? 1 : 0;
        if ((slab.memory.size == 0) != slab.records.empty() || bucket.used[index] > slab.records.size())
            return false;
        used_blocks += bucket.used[index];
        unused_bytes += bucket.used[index] == 0 ? slab.memory.size : 0;
    }
    used_bytes += used_blocks * block_bytes;
    return free_blocks == bucket.free_blocks && slabs == bucket.slab_count && unused_bytes == bucket.unused_bytes &&
           free_blocks + used_blocks + bucket.spare_records.size() == bucket.records.size() &&
           bucket.pending.validate();
}

bool BucketAllocator::validate() const {
    uint64_t used_bytes = 0;
    for (uint32_t number = 0; number < bucket_count; ++number) {
        const Bucket& bucket = buckets_[number];
        BiasedLock lock(bucket.mutex);
        if (!validate(bucket, block_bytes(number), used_bytes))
            return false;
    }
    return used_bytes == tally_.live() + tally_.deferred();
}

}  // namespace polder::memory
