// Transfers of several parts at once, for a command that misses many ranges or many storages. All parts that one peer holds are copied
// by one list of copies (driver::PeerCopy::copy_all). The list waits for everything that any of its parts has to wait for, because the
// command needs all parts anyway. Other parts are copied one by one.
#include "domain_impl.h"

#include <base/log.h>

#include <algorithm>

namespace polder::memory {

Result<void> DomainImpl::transfer_all(std::span<const TransferPart> parts, SpaceId to) {
    if (parts.size() == 1) [[likely]] {
        POLDER_TRY(transfer(*parts[0].storage, StorageRect::of(parts[0].range), parts[0].from, to));
        return {};
    }
    std::vector<TransferPart> of_peers;
    for (const TransferPart& part : parts) {
        // Where host and device share a block, it is copied as host memory.
        const bool is_from_peer = mover_.topology().route(part.from.space, to) == Route::peer &&
                                  !part.storage->is_linked_to(to) && !part.storage->is_linked_to(part.from.space);
        if (is_from_peer)
            of_peers.push_back(part);
        else
            POLDER_TRY(transfer(*part.storage, StorageRect::of(part.range), part.from, to));
    }
    std::ranges::sort(of_peers, {}, [](const TransferPart& part) { return part.from.space; });
    for (size_t first = 0, past = 0; first < of_peers.size(); first = past) {
        while (past < of_peers.size() && of_peers[past].from.space == of_peers[first].from.space)
            ++past;
        POLDER_TRY(transfer_from_peer(std::span{of_peers}.subspan(first, past - first), to));
    }
    return {};
}

Result<void> DomainImpl::transfer_from_peer(std::span<const TransferPart> parts, SpaceId to) {
    const SpaceId from = parts.front().from.space;
    std::vector<Move> moves;
    moves.reserve(parts.size());
    WaitList before;
    for (const TransferPart& part : parts) {
        POLDER_TRY(own(*part.storage, part.range, from));
        POLDER_TRY(own(*part.storage, part.range, to));
        Residency& residency = part.storage->residency();
        residency.prepare_part({&part.range, 1}, 3);
        residency.hidden_read_waits(part.range, from, before);
        residency.hidden_write_waits(part.range, to, before);
        const StorageRect rect = StorageRect::of(part.range);
        moves.push_back(
            {place_of(from, part.from.base, rect), place_of(to, part.storage->base(to, part.range), rect), rect.shape});
    }
    POLDER_ASSIGN(done, mover_.hidden_peer_copies(moves, before.view()));
    for (const TransferPart& part : parts) {
        part.storage->residency().commit_transfer({&part.range, 1}, {from, to, done, done});
        ledger_.add_moved(from, to, ByteCount{part.range.size()});
        if (trace::enabled()) [[unlikely]]
            trace_transfer(*part.storage, StorageRect::of(part.range), from, to, done);
    }
    POLDER_LOG(memory, "transfer of %zu parts from space %u to %u as one", parts.size(), from.value, to.value);
    return {};
}

}  // namespace polder::memory
