// cl_polder_memory_statistics: the functions of CL/cl_ext_polder.h. They copy the statistics of the memory layer to the structures of the
// extension, for host memory and for the memories of the context's devices.
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
    // CL_INVALID_VALUE: num_entries is 0 and entries is not null, or the other way round; or entries and num_entries_ret are null.
    if ((num_entries == 0) != (entries == nullptr) || (!entries && !num_entries_ret))
        return fail(Status::invalid_value);
    std::copy_n(all.begin(), std::min<size_t>(all.size(), num_entries), entries);
    if (num_entries_ret)
        *num_entries_ret = static_cast<cl_uint>(all.size());
    return {};
}

cl_memory_space_polder describe(memory::Space& space) {
    const memory::Allocator::Statistics pool = space.pool().statistics();
    return {space.id().value,
            static_cast<cl_uint>(pool.live_blocks),
            space.total_bytes().value,
            pool.live.value,
            pool.live_peak.value,
            space.free_bytes().value,
            space.largest_free(pool).value};
}

bool is_used_by(const memory::Space& space, const Context& context) {
    return space.id().is_host() || std::any_of(context.devices().begin(), context.devices().end(),
                                               [&](const Ref<Device>& device) { return &device->space() == &space; });
}

cl_memory_statistics_polder statistics_of(memory::Space& space) {
    const memory::Allocator::Statistics now = space.pool().statistics();
    return {space.id().value,
            static_cast<cl_uint>(now.regions),
            now.live.value,
            now.live_peak.value,
            now.live.value + now.deferred.value,
            now.reserved.value,
            now.reserved_peak.value,
            now.inactive_split.value,
            now.free.value,
            now.largest_free.value,
            now.live_blocks,
            now.deferred_blocks,
            now.allocations,
            now.frees,
            now.hits,
            now.retries,
            now.out_of_memory};
}

cl_memory_budget_polder budget_of(const Context& context, memory::Space& space) {
    const memory::SpaceBudget budget = space.budget();
    const memory::SpaceActivity activity = space.activity();
    return {space.id().value,
            0,
            budget.total.value,
            budget.limit.value,
            context.domain().promised().value,
            budget.committed.value,
            budget.reserved.value,
            budget.resident.value,
            budget.used_by_others.value,
            budget.available.value,
            activity.compactions,
            activity.compacted.value,
            activity.evicted.value,
            activity.written_back.value,
            activity.returned.value,
            activity.maps,
            activity.unmaps};
}

// Calls `describe` for each space of the context and returns the results.
template <class Describe>
auto spaces_of(const Context& context, Describe&& describe) {
    std::vector<decltype(describe(std::declval<memory::Space&>()))> all;
    for (memory::Space* space : Platform::get().spaces())
        if (is_used_by(*space, context))
            all.push_back(describe(*space));
    return all;
}

// Calls f(Space&) for the context's space with this number, or for all of its spaces.
template <class F>
Result<void> for_space(const Context& context, cl_uint number, F&& f) {
    bool found = false;
    for (memory::Space* space : Platform::get().spaces()) {
        if (!is_used_by(*space, context) || (number != CL_MEMORY_SPACE_ALL_POLDER && space->id().value != number))
            continue;
        f(*space);
        found = true;
    }
    // CL_INVALID_VALUE: space is not a memory space of the context.
    return found ? Result<void>{} : fail(Status::invalid_value);
}

std::vector<cl_memory_transfers_polder> transfers_of(const Context& context) {
    std::vector<cl_memory_transfers_polder> all;
    for (const memory::Ledger::Entry& entry : context.domain().ledger().entries())
        all.push_back({entry.from.value, entry.to.value, entry.transfers, entry.moved_bytes, entry.needed_bytes});
    return all;
}

}  // namespace
}  // namespace polder::api

using namespace polder::api;

cl_int CL_API_CALL clGetMemorySpacesPOLDER(cl_context context, cl_uint num_entries, cl_memory_space_polder* entries,
                                           cl_uint* num_entries_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        return list(spaces_of(*checked, describe), num_entries, entries, num_entries_ret);
    });
}

cl_int CL_API_CALL clGetMemoryTransfersPOLDER(cl_context context, cl_uint num_entries,
                                              cl_memory_transfers_polder* entries, cl_uint* num_entries_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        return list(transfers_of(*checked), num_entries, entries, num_entries_ret);
    });
}

cl_int CL_API_CALL clGetMemoryStatisticsPOLDER(cl_context context, cl_uint num_entries,
                                               cl_memory_statistics_polder* entries, cl_uint* num_entries_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        return list(spaces_of(*checked, statistics_of), num_entries, entries, num_entries_ret);
    });
}

cl_int CL_API_CALL clGetMemoryBudgetsPOLDER(cl_context context, cl_uint num_entries, cl_memory_budget_polder* entries,
                                            cl_uint* num_entries_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        return list(spaces_of(*checked, [&](memory::Space& space) { return budget_of(*checked, space); }), num_entries,
                    entries, num_entries_ret);
    });
}

cl_int CL_API_CALL clResetMemoryPeaksPOLDER(cl_context context, cl_uint space, cl_memory_peaks_polder peaks) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        // CL_INVALID_VALUE: peaks is 0 or has unknown bits.
        constexpr cl_memory_peaks_polder known = CL_MEMORY_PEAK_ALLOCATED_POLDER | CL_MEMORY_PEAK_RESERVED_POLDER;
        if (peaks == 0 || (peaks & ~known) != 0)
            return fail(Status::invalid_value);
        return for_space(*checked, space, [&](memory::Space& each) {
            if (peaks & CL_MEMORY_PEAK_ALLOCATED_POLDER)
                each.pool().reset_peak(memory::Allocator::Peak::live);
            if (peaks & CL_MEMORY_PEAK_RESERVED_POLDER)
                each.pool().reset_peak(memory::Allocator::Peak::reserved);
        });
    });
}

cl_int CL_API_CALL clTrimMemoryPOLDER(cl_context context, cl_uint space) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        return for_space(*checked, space, [](memory::Space& each) { each.trim(); });
    });
}
