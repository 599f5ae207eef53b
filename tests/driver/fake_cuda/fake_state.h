// The state behind the fake library's functions.
#pragma once

#include "fake_cuda.h"

#include <atomic>
#include <condition_variable>
#include <cuda/cuda_api.h>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace polder::cuda {

struct ContextOfCuda {
    int device = 0;
    std::atomic<bool> is_lost{false};
    std::mutex mutex;
    int users = 0;  // of the primary context; under the state's mutex
    uint64_t memory_bytes = 0;
    uint64_t used_bytes = 0;
};

// One event_record: reached when the stream comes to it.
struct FakeRecord {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_reached = false;
    uint64_t reached_ns = 0;

    void reach();
    void wait();
};
struct EventOfCuda {
    std::mutex mutex;
    std::shared_ptr<FakeRecord> newest;  // null: never recorded, that is, complete
    [[nodiscard]] std::shared_ptr<FakeRecord> record() {
        const std::lock_guard lock(mutex);
        return newest;
    }
};

struct StreamOfCuda {
    explicit StreamOfCuda(ContextOfCuda& owner);
    ~StreamOfCuda();
    void push(std::function<void()> command);
    [[nodiscard]] bool is_idle();

    ContextOfCuda& context;

private:
    void work();
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> commands_;
    bool is_busy_ = false;
    bool stopping_ = false;
    std::thread thread_;
};

struct ModuleOfCuda {
    std::string text;
};
struct FunctionOfCuda {
    fake_cuda::Kernel kernel;
};

namespace fake {

struct State {
    std::mutex mutex;
    std::deque<ContextOfCuda> contexts;
    std::map<const std::byte*, uint64_t> pinned;  // allocated
    struct Registration {
        uint64_t size;
        int device;  // in whose context
    };
    std::map<const std::byte*, Registration> registered;
    std::map<std::string, fake_cuda::Kernel> kernels;
    std::map<std::string, int> failures;
    std::map<std::string, uint64_t> calls;
    std::map<std::string, uint64_t> bytes;  // copied, allocated
    std::atomic<bool> is_held{false};
    int driver_version = 12040;
    struct Mapping {
        uint64_t size;
        MemoryHandle handle;
    };
    std::map<DevicePointer, Mapping> mappings;
    struct Allocation {
        int device;
        uint64_t size;
    };
    std::map<MemoryHandle, Allocation> allocations;
    MemoryHandle next_handle = 1;

    [[nodiscard]] bool is_pinned(const void* begin, uint64_t size);
    // Under the mutex: some of the bytes are registered or were allocated as pinned memory.
    [[nodiscard]] bool touches_pinned(const std::byte* begin, uint64_t size) const;
};
State& state();
uint64_t now_ns();
extern thread_local ContextOfCuda* current;

// Runs one grid on the calling thread.
void run_grid(const fake_cuda::Kernel& kernel, const unsigned (&grid)[3], uint64_t dynamic_bytes,
              const std::vector<std::byte>& parameter);

} // namespace fake
} // namespace polder::cuda
