// cl_polder_memory_statistics: where a context's bytes are, and which were moved. See CL/cl_ext_polder.h.
#include "entry.h"

#include <memory/ledger.h>
#include <runtime/context.h>
#include <runtime/platform.h>

#include <CL/cl_ext_polder.h>
#include <algorithm>

using namespace polder;
using namespace polder::runtime;

namespace polder::api {
namespace {

template <class Entry>
Result<void> list(const std::vector<Entry>& all, cl_uint num_entries, Entry* entries, cl_uint* num_entries_ret) {
    if ((num_entries == 0) != (entries == nullptr) || (!entries && !num_entries_ret))
        return fail(Status::invalid_value);
    std::copy_n(all.begin(), std::min<size_t>(all.size(), num_entries), entries);
    if (num_entries_ret)
        *num_entries_ret = static_cast<cl_uint>(all.size());
    return {};
}

cl_memory_space_polder describe(memory::Space& space) {
    const memory::Allocator::Statistics pool = space.pool().statistics();
    const uint64_t free_bytes = space.free_bytes().value;
    return {space.id().value, static_cast<cl_uint>(pool.live_blocks), space.total_bytes().value, pool.live.value,
            pool.live_peak.value, free_bytes,
            // What is not reserved yet can be had in one piece.
            std::max(pool.largest_free.value, free_bytes - std::min(free_bytes, pool.free.value))};
}

bool is_used_by(const memory::Space& space, const Context& context) {
    return space.id().is_host() || std::any_of(context.devices().begin(), context.devices().end(),
                                               [&](const Ref<Device>& device) { return &device->space() == &space; });
}

std::vector<cl_memory_space_polder> spaces_of(const Context& context) {
    std::vector<cl_memory_space_polder> all;
    for (memory::Space* space : Platform::get().spaces())
        if (is_used_by(*space, context))
            all.push_back(describe(*space));
    return all;
}

std::vector<cl_memory_transfers_polder> transfers_of(const Context& context) {
    std::vector<cl_memory_transfers_polder> all;
    for (const memory::Ledger::Entry& entry : context.domain().ledger().entries())
        all.push_back({entry.from.value, entry.to.value, entry.transfers, entry.moved_bytes, entry.needed_bytes});
    return all;
}

} // namespace
} // namespace polder::api

using namespace polder::api;

cl_int CL_API_CALL clGetMemorySpacesPOLDER(cl_context context, cl_uint num_entries, cl_memory_space_polder* entries,
                                           cl_uint* num_entries_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        return list(spaces_of(*checked), num_entries, entries, num_entries_ret);
    });
}

cl_int CL_API_CALL clGetMemoryTransfersPOLDER(cl_context context, cl_uint num_entries,
                                              cl_memory_transfers_polder* entries, cl_uint* num_entries_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        return list(transfers_of(*checked), num_entries, entries, num_entries_ret);
    });
}
