// CudaContext: one GPU's primary context, which PyTorch and the CUDA runtime use too, and the GPU's properties.
//
// Owned by its device. A thread that calls the CUDA API for the GPU holds a Current, which restores the application's context afterwards. In a
// thread without a context, the context of CUDA's first GPU stays: the CUDA runtime would choose the same one there (decision 206). Once the GPU is lost (a kernel trapped, the hardware failed, the process forked), it stays lost.
// Any thread.
#pragma once

#include <atomic>
#include <cuda/cuda_api.h>
#include <string>

namespace polder::cuda {

struct GpuFacts {
    std::string name;
    int driver_version = 0;
    int compute_major = 0;
    int compute_minor = 0;
    uint32_t multiprocessors = 0;
    uint32_t clock_mhz = 0;
    uint32_t warp_size = 32;
    uint64_t max_threads_per_block = 0;
    uint64_t max_block[3] = {};
    uint64_t max_grid[3] = {};
    uint64_t shared_bytes = 0;  // for one block, with the opt-in
    uint64_t planned_shared_bytes = 0;  // for one block, without it
    uint64_t l2_bytes = 0;
    uint64_t memory_bytes = 0;
    bool uses_host_pointers = false;  // kernels use registered memory at the host's addresses
};

class CudaContext {
public:
    [[nodiscard]] static Result<std::unique_ptr<CudaContext>> open(const CudaApi& api, int ordinal);
    CudaContext(const CudaContext&) = delete;
    CudaContext& operator=(const CudaContext&) = delete;
    ~CudaContext();

    const CudaApi& api;
    const Device device;
    const Context handle;
    const GpuFacts facts;

    class Current {
    public:
        explicit Current(const CudaContext& context) : Current(context.api, context.handle, context.device) {}
        Current(const CudaApi& api, Context handle, Device device) : api_(api), handle_(handle) {
            const bool is_known = api_.context_get_current(&before_) == code_success;
            if (is_known && before_ == handle_)
                return;
            restores_ = is_known && (before_ != nullptr || device != 0);
            // When the context cannot be set, sets none, so that no call acts on the application's context.
            if (api_.context_set_current(handle_) != code_success) [[unlikely]]
                api_.context_set_current(nullptr);
        }
        Current(const Current&) = delete;
        Current& operator=(const Current&) = delete;
        ~Current() {
            if (restores_)
                api_.context_set_current(before_);
        }

    private:
        const CudaApi& api_;
        const Context handle_;
        Context before_ = nullptr;
        bool restores_ = false;
    };

    [[nodiscard]] bool is_lost() const { return is_lost_.load(std::memory_order_relaxed); }
    // Marks the GPU as lost, and reports it the first time. Needs no memory.
    void lose(const char* what, Code code);
    // In the child of a fork: CUDA does not work there, and none of its functions may be called.
    void lose_in_child() { is_lost_.store(true, std::memory_order_relaxed); }

private:
    CudaContext(const CudaApi& functions, Device number, Context context, GpuFacts known)
        : api(functions), device(number), handle(context), facts(std::move(known)) {}

    std::atomic<bool> is_lost_{false};
};

}  // namespace polder::cuda
