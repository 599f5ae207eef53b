#include <base/log.h>

#include <cuda/cuda_context.h>

namespace polder::cuda {
namespace {

Result<GpuFacts> facts_of(const CudaApi& api, Device device) {
    GpuFacts facts;
    char name[256] = {};
    POLDER_CUDA_TRY(api, device_name(name, sizeof name - 1, device), "cuDeviceGetName");
    facts.name = name;
    POLDER_CUDA_TRY(api, driver_version(&facts.driver_version), "cuDriverGetVersion");
    Code failed = code_success;
    const auto ask = [&](int attribute) {
        int value = 0;
        if (const Code code = api.device_attribute(&value, static_cast<Attribute>(attribute), device))
            failed = code;
        return static_cast<uint32_t>(value);
    };
    facts.compute_major = static_cast<int>(ask(attribute_compute_capability_major));
    facts.compute_minor = static_cast<int>(ask(attribute_compute_capability_minor));
    facts.multiprocessors = ask(attribute_multiprocessor_count);
    facts.clock_mhz = ask(attribute_clock_rate_khz) / 1000;
    facts.warp_size = ask(attribute_warp_size);
    facts.max_threads_per_block = ask(attribute_max_threads_per_block);
    for (int d = 0; d < 3; ++d) {
        facts.max_block[d] = ask(attribute_max_block_dim_x + d);
        facts.max_grid[d] = ask(attribute_max_grid_dim_x + d);
    }
    facts.planned_shared_bytes = ask(attribute_max_shared_memory_per_block);
    facts.shared_bytes =
        std::max<uint64_t>(facts.planned_shared_bytes, ask(attribute_max_shared_memory_per_block_optin));
    facts.l2_bytes = ask(attribute_l2_cache_bytes);
    facts.uses_host_pointers =
        ask(attribute_unified_addressing) != 0 && ask(attribute_host_pointer_of_registered_memory) != 0;
    const bool has_virtual_memory = ask(attribute_virtual_memory_management) != 0;
    const bool has_stream_writes = ask(attribute_64_bit_stream_memory_operations) != 0;
    if (failed != code_success)
        return fail(api.error(failed, "cuDeviceGetAttribute"));
    size_t bytes = 0;
    POLDER_CUDA_TRY(api, device_total_memory(&bytes, device), "cuDeviceTotalMem");
    facts.memory_bytes = bytes;
    if (facts.compute_major < 7)
        return fail(Status::device_not_found, facts.name + " is older than compute capability 7.0");
    if (!has_virtual_memory || !has_stream_writes)
        return fail(Status::device_not_found,
                    facts.name + ": the driver lacks virtual memory or stream memory operations");
    return facts;
}

} // namespace

Result<std::unique_ptr<CudaContext>> CudaContext::open(const CudaApi& api, int ordinal) {
    Device device = 0;
    POLDER_CUDA_TRY(api, device_get(&device, ordinal), "cuDeviceGet");
    POLDER_ASSIGN(facts, facts_of(api, device));
    Context handle = nullptr;
    POLDER_CUDA_TRY(api, primary_context_retain(&handle, device), "cuDevicePrimaryCtxRetain");
    try {
        return std::unique_ptr<CudaContext>(new CudaContext(api, device, handle, std::move(facts)));
    } catch (...) {
        api.primary_context_release(device);
        throw;
    }
}

CudaContext::~CudaContext() {
    if (is_lost())
        return;
    Context current = nullptr;
    if (api.context_get_current(&current) == code_success && current == handle)
        api.context_set_current(nullptr);
    api.primary_context_release(device);
}

void CudaContext::lose(const char* what, Code code) {
    if (is_lost_.exchange(true))
        return;
    const char* name = nullptr;
    if (api.error_name(code, &name) != code_success || !name)
        name = "CUDA error";
    log::line(log::Category::error, "%s is lost: %s: %s (%d)", facts.name.c_str(), what, name, static_cast<int>(code));
}

} // namespace polder::cuda
