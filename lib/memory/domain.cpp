// Domain: creation, pinning, and the transfers that make bytes resident in a memory: one transfer for each range and source, or
// chunk by chunk for long staged ones.
#include "domain_impl.h"

#include <base/log.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace polder::memory {
namespace {

// Converts a number for %llu of printf.
std::vector<SpaceId> ids_of(std::span<Space* const> spaces) {
    std::vector<SpaceId> ids{application_space};
    for (const Space* space : spaces)
        ids.push_back(space->id());
    if (std::ranges::find(ids, host_space) == ids.end())
        ids.push_back(host_space);
    return ids;
}

std::shared_ptr<const SpaceTable> table_of(std::span<Space* const> spaces) {
    auto table = std::make_shared<SpaceTable>();
    for (Space* space : spaces)
        (*table)[space->id().value] = static_cast<SpaceImpl*>(space);
    return table;
}

// Registers the regions of host memory with the devices of this context, now and later, where host memory is pinned.
void pin_host_memory(std::span<Space* const> spaces) {
    const auto found = std::ranges::find_if(spaces, [](const Space* space) { return space->id().is_host(); });
    if (found == spaces.end())
        return;
    SpaceImpl& host = static_cast<SpaceImpl&>(**found);
    for (Space* const space : spaces) {
        driver::HostRegions* const regions = space->device() ? space->device()->host_regions() : nullptr;
        if (regions && host.pins())
            host.pins()->add_device(*regions);
        if (regions && host.adaptive_pins())
            host.adaptive_pins()->add_device(*regions);
    }
}

}  // namespace

std::unique_ptr<Domain> Domain::create(std::span<Space* const> spaces, const DomainOptions& options) {
    pin_host_memory(spaces);
    return std::make_unique<DomainImpl>(spaces, options);
}

DomainImpl::DomainImpl(std::span<Space* const> spaces, const DomainOptions& options)
    : options_(options), can_evict_(spaces.size() > 1),
      has_unified_(std::ranges::any_of(
          spaces, [](Space* space) { return space->device() && space->device()->unified_memory(); })),
      space_table_(table_of(spaces)), mover_(spaces), ledger_(ids_of(spaces)) {}

ByteCount DomainImpl::promised() const {
    return ByteCount{static_cast<uint64_t>(std::max<int64_t>(promised_.sum(), 0))};
}

Result<DeviceAddress> DomainImpl::pin(Storage& storage, SpaceId wanted, Contents contents) {
    StorageImpl& owner = impl(storage);
    const SpaceId space = owner.place_of(wanted);
    const ByteRange all{0, owner.size().value};
    owner.pin(space);
    for (;;) {
        POLDER_TRY(space.is_host() ? reserve_for_host(owner) : reserve(owner, space, nullptr));
        const StorageGuard guard{storage};
        if (!owner.find(space, all))  // an eviction that began before the pin has removed the memory: reserve again
            continue;
        if (contents == Contents::present)
            owner.write_initially(space);
        return owner.base(space, all);
    }
}

// --- transfers ---

namespace {

// When a transfer fails halfway, commits the operations that were submitted.
class BrokenTransfer {
public:
    BrokenTransfer(Residency& residency, const Rows& rows, const Move& move, const Moved& moved)
        : residency_(residency), rows_(rows), move_(move), moved_(moved) {}
    BrokenTransfer(const BrokenTransfer&) = delete;
    BrokenTransfer& operator=(const BrokenTransfer&) = delete;
    ~BrokenTransfer() {
        if (!complete_ && moved_.has_begun()) [[unlikely]]
            residency_.commit_broken_transfer(rows_.view(),
                                              {move_.from.space, move_.to.space, moved_.read, moved_.written});
    }
    void is_complete() { complete_ = true; }

private:
    Residency& residency_;
    const Rows& rows_;
    const Move& move_;
    const Moved& moved_;
    bool complete_ = false;
};

}  // namespace

void DomainImpl::trace_transfer(const StorageImpl& storage, const StorageRect& rect, SpaceId from, SpaceId to,
                                driver::Timepoint done, Transferring why) {
    trace::Fields fields;
    fields.kind = trace::Kind::transfer;
    fields.flags = static_cast<uint8_t>(why);
    fields.space = from;
    fields.other_space = to;
    fields.queue = done.queue;
    fields.storage = storage.number();
    fields.address = rect.offset;
    fields.size = bytes_of(rect.shape);
    fields.value = done.value;
    trace::record(fields);
}

Result<Moved> DomainImpl::transfer(StorageImpl& storage, const StorageRect& rect, const Source& source, SpaceId to,
                                   StagingSlots* slots, driver::Timepoint after) {
    // Where host and device share a block, the transfer uses it as host memory.
    if (storage.is_linked_to(to))
        to = host_space;
    const SpaceId from = storage.is_linked_to(source.space) ? host_space : source.space;
    POLDER_TRY(own(storage, rect.span(), from));
    POLDER_TRY(own(storage, rect.span(), to));
    Residency& residency = storage.residency();
    const Rows rows = rows_of(rect);
    residency.prepare_part(rows.view(), 3);  // rows that touch were prepared as one range
    const Move move{place_of(from, source.base, rect), place_of(to, storage.base(to, rect.span()), rect), rect.shape};
    Moved moved;
    BrokenTransfer broken{residency, rows, move, moved};
    if (const Route route = mover_.topology().route(from, to); route != Route::staged) [[likely]] {
        WaitList before;
        before.add(after);
        for (const ByteRange& row : rows)
            residency.transfer_waits(row, from, to, before);
        POLDER_TRY(mover_.hidden_direct(route, move, before.view(), moved));
    } else {
        WaitList before_read;
        WaitList before_write;
        before_write.add(after);
        for (const ByteRange& row : rows) {
            residency.hidden_read_waits(row, from, before_read);
            residency.hidden_write_waits(row, to, before_write);
        }
        POLDER_TRY(mover_.hidden(move, before_read, before_write, slots, moved));
    }
    broken.is_complete();
    residency.commit_transfer(rows.view(), {from, to, moved.read, moved.written});
    ledger_.add_moved(from, to, ByteCount{bytes_of(rect.shape)});
    if (trace::enabled()) [[unlikely]]
        trace_transfer(storage, rect, from, to, moved.written);
    POLDER_LOG(memory, "storage %llu: transfer [%llu, %llu) from space %u to %u%s", llu(storage.number()),
               llu(rows[0].begin), llu(rows[rows.size() - 1].end), from.value, to.value,
               rows.size() > 1 ? ", some rows of it" : "");
    return moved;
}

Result<void> DomainImpl::make_resident(StorageImpl& storage, const StorageRect& rect, SpaceId target) {
    const SourceChoice choice{mover_.topology(), target, target};
    count_needed(storage.residency(), rect, choice, HostPlaces::apart);
    const RectParts parts = split_by_source(storage.residency(), storage.replicas(), rect, choice);
    for (const RectPart& part : parts)
        if (part.source != target)
            POLDER_TRY(transfer(storage, part_of(rect, part), {part.source, part.base}, target));
    return {};
}

void DomainImpl::count_needed(const Residency& residency, const StorageRect& rect, const SourceChoice& choice,
                              HostPlaces places) {
    const auto count = [&](SpaceId source, uint64_t bytes) {
        if (source == choice.to)
            return;
        if (places == HostPlaces::apart || mover_.topology().route(source, choice.to) != Route::within)
            ledger_.add_needed(source, choice.to, ByteCount{bytes});
    };
    if (const std::optional<SpaceId> source = only_source(residency, rect, choice))
        return count(*source, bytes_of(rect.shape));
    for (const ByteRange& row : rows_of(rect))
        residency.visit(row, [&](ByteRange range, const RangeState& state) {
            if (!state.holders.empty())
                count(choice(state.holders), range.size());
        });
}

// --- long transfers ---

bool DomainImpl::is_long(ByteRange range, SpaceId from, SpaceId to) const {
    return mover_.topology().route(from, to) == Route::staged && Staging::chunk_bytes(range.size()) < range.size();
}

bool DomainImpl::has_long_transfer(StorageImpl& storage, ByteRange range, SpaceId target) const {
    if (is_host_memory(target))
        return false;
    const StorageGuard guard{storage};
    bool found = false;
    storage.residency().visit(range, [&](ByteRange piece, const RangeState& state) {
        found = found || (!state.holders.empty() && !state.holders.contains(target) &&
                          is_long(piece, mover_.topology().best_source(state.holders, target), target));
    });
    return found;
}

Result<void> DomainImpl::transfer_in_chunks(const LongTransfer& transfer, SpaceId target) {
    std::optional<StagingSlots> slots;
    driver::Timepoint last;  // of the last chunk
    const ByteRange range = transfer.range;
    for (uint64_t at = range.begin; at < range.end;) {
        if (!slots) {
            POLDER_ASSIGN(taken, mover_.staging().take(range.end - at));
            slots.emplace(std::move(taken));
        }
        const ByteRange chunk{at, std::min(range.end, at + slots->chunk_bytes())};
        if (slots->is_reserve()) {
            // The reserve block is held like a lock, and may be taken only after the storages' locks: the transfer takes it again.
            slots.reset();
        }
        POLDER_TRY(
            transfer_chunk(*transfer.storage, {range.begin, at}, chunk, target, slots ? &*slots : nullptr, last));
        at = chunk.end;
        StorageGuard::pass(*transfer.storage);
    }
    return {};
}

// Another thread may have changed the storage since the last chunk, so each chunk is planned by itself. `done` is the range that
// earlier chunks have moved. It gets the touches of this chunk as well, so that the residency can merge the pieces.
Result<void> DomainImpl::transfer_chunk(StorageImpl& storage, ByteRange done, ByteRange chunk, SpaceId target,
                                        StagingSlots* slots, driver::Timepoint& last) {
    if (has_failed(last))
        return fail(last.queue->status(last.value), "a transfer between two devices has failed");
    const StorageGuard guard{storage};
    if (!storage.find(target, chunk))
        return {};  // evicted since: the caller plans the command again
    Residency& residency = storage.residency();
    residency.prepare({&chunk, 1}, 3);
    struct Part {
        ByteRange range;
        SpaceId from;
        DeviceAddress base;
    };
    SmallVector<Part, 4> parts;
    residency.visit(chunk, [&](ByteRange range, const RangeState& state) {
        if (state.holders.empty() || state.holders.contains(target))
            return;
        const SpaceId from = mover_.topology().best_source(state.holders, target);
        if (mover_.topology().route(from, target) == Route::staged)
            storage.replicas().visit(from, range, [&](const Replica& replica) {
                parts.push_back({replica.range.intersect(range), from, replica.base});
            });
    });
    residency.prepare({&done, 1}, 2 * parts.size());
    for (const Part& part : parts) {
        POLDER_ASSIGN(moved,
                      transfer(storage, StorageRect::of(part.range), {part.from, part.base}, target, slots, last));
        residency.commit_broken_transfer({&done, 1}, {part.from, target, moved.read, moved.written});
        ledger_.add_needed(part.from, target, ByteCount{part.range.size()});
        last = moved.written;
    }
    const ByteRange all{done.begin, chunk.end};
    residency.merge({&all, 1});
    return {};
}

// Sub-buffers begin at multiples of the device's alignment. Replicas of parts do too, so that a sub-buffer's address has that alignment.
Alignment DomainImpl::replica_alignment(SpaceId space) const {
    const driver::Device* const device = space.is_host() ? nullptr : this->space(space).device();
    return device ? std::max(block_alignment, Alignment{device->info().base_address_alignment}) : block_alignment;
}

}  // namespace polder::memory
