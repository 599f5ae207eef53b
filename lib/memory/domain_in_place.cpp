// The common case of read, write, fill, copy and map: one row of bytes that are where the command's device computes. domain_copies.cpp
// and domain_maps.cpp need several steps for a rectangle. Here, one pass over the residency's pieces prepares each piece, checks that its
// bytes are there, and collects the timepoints to wait for. Then one operation is submitted and committed.
#include "domain_impl.h"
#include "messages.h"
#include "prepared.h"

#include <optional>

namespace polder::memory {

std::optional<driver::Timepoint> DomainImpl::read_in_place(const Execution& execution, StorageImpl& storage,
                                                           ByteRange range, std::byte* to) {
    Residency& residency = storage.residency();
    const auto from = storage.find(host_space, range);
    if (!from)
        return std::nullopt;
    const Merged merged{residency, range};
    WaitList waits{&execution.queue};
    waits.require(execution.waits);
    if (!residency.prepare_held(range, host_space, 1, waits))
        return std::nullopt;
    const Move move{{host_space, *from, {}}, {host_space, DeviceAddress::of(to), {}}, {range.size(), 1, 1}};
    const driver::Timepoint done = Mover::within(execution.queue, move, {waits.view(), execution.times});
    residency.commit_read({&range, 1}, host_space, TouchKind::user_read, done);
    log_read(storage, range.size(), host_space, 1);
    return done;
}

namespace {

// Prepares `range` to be overwritten in the execution's space, calls submit(begin, waits), which submits one operation, then commits it.
template <class Submit>
InPlace overwrite_in_place(const Execution& execution, StorageImpl& storage, ByteRange range, Submit&& submit) {
    const SpaceId space = execution.space;
    Residency& residency = storage.residency();
    const Merged merged{residency, range};
    WaitList waits{&execution.queue};
    waits.require(execution.waits);
    const Version version = residency.prepare_in_place(range, space, Access::overwrite, 1, waits)->next();
    const driver::Timepoint done = submit(storage.base(space, range).plus(range.begin), waits.view());
    residency.commit_write({&range, 1}, space, version, done);
    return {done, version};
}

}  // namespace

driver::Timepoint DomainImpl::write_in_place(const Execution& execution, StorageImpl& storage, ByteRange range,
                                             const std::byte* from) {
    const SpaceId space = execution.space;
    const auto [done, version] =
        overwrite_in_place(execution, storage, range, [&](DeviceAddress begin, driver::Waits waits) {
            const Move move{{host_space, DeviceAddress::of(from), {}}, {space, begin, {}}, {range.size(), 1, 1}};
            return mover_.from_host(execution.queue, move, {waits, execution.times});
        });
    ledger_.add_moved_as_needed(host_space, space, ByteCount{range.size()});
    log_write(storage, range.size(), execution.space, version);
    return done;
}

driver::Timepoint DomainImpl::fill_in_place(const Execution& execution, StorageImpl& storage, ByteRange range,
                                            std::span<const std::byte> pattern) {
    const auto [done, version] =
        overwrite_in_place(execution, storage, range, [&](DeviceAddress begin, driver::Waits waits) {
            return execution.queue.fill({begin, range.size(), pattern}, {waits, execution.times});
        });
    log_fill(storage, range, execution.space, version);
    return done;
}

std::optional<driver::Timepoint> DomainImpl::copy_in_place(const Execution& execution, StorageImpl& source,
                                                           ByteRange from, StorageImpl& target, ByteRange to) {
    const SpaceId space = execution.space;
    const auto source_address = source.find(space, from);
    if (!source_address)
        return std::nullopt;
    const Merged source_merged{source.residency(), from};
    const Merged target_merged{target.residency(), to};
    WaitList waits{&execution.queue};
    waits.require(execution.waits);
    if (!source.residency().prepare_held(from, space, 1, waits))
        return std::nullopt;
    const auto version = target.residency().prepare_in_place(to, space, Access::overwrite, 1, waits);
    const Move move{
        {space, *source_address, {}}, {space, target.base(space, to).plus(to.begin), {}}, {from.size(), 1, 1}};
    const driver::Timepoint done = Mover::within(execution.queue, move, {waits.view(), execution.times});
    source.residency().commit_read({&from, 1}, space, TouchKind::user_read, done);
    target.residency().commit_write({&to, 1}, space, version->next(), done);
    log_copy(source, target, from.size(), space, version->next());
    return done;
}

std::optional<InPlace> DomainImpl::map_in_place(const Execution& execution, StorageImpl& storage, ByteRange range,
                                                Access access) {
    Residency& residency = storage.residency();
    const SpaceId place = storage.map_place();
    const Merged merged{residency, range};
    WaitList waits{&execution.queue};
    waits.require(execution.waits);
    const auto version = residency.prepare_in_place(range, place, access, 1, waits);
    if (!version)
        return std::nullopt;
    const driver::Timepoint done = execution.queue.marker({waits.view(), execution.times});
    if (!reads(access))
        residency.commit_write({&range, 1}, place, version->next(), done);
    else if (writes(access))
        residency.commit_map_for_writing({&range, 1}, place, version->next(), done);
    else
        residency.commit_read({&range, 1}, place, TouchKind::user_read, done);
    return InPlace{done, version->next()};
}

}  // namespace polder::memory
