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
#include <optional>
#include <shared_mutex>
#include <string>
#include <support/ptx/module.h>
#include <thread>
#include <vector>

namespace polder::cuda {

struct ContextOfCuda {
    int device = 0;
    std::atomic<int> lost_by{0};  // the error of all calls from then on; 0: it works
    // How often a call has failed as only those of a lost GPU do. The streams of before execute nothing more.
    std::atomic<unsigned> deaths{0};
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
    // `command` waits for nothing.
    void push(std::function<void()> command) { append(std::move(command), false); }
    void push_wait(std::function<void()> command) { append(std::move(command), true); }
    [[nodiscard]] bool is_idle();
    [[nodiscard]] bool is_dead() const { return context.lost_by.load() != 0 || context.deaths.load() != born_after_; }

    ContextOfCuda& context;

private:
    struct Command {
        std::function<void()> function;
        bool waits;
    };
    void append(std::function<void()> command, bool waits);
    void execute(const Command& command);
    void work();
    const unsigned born_after_ = context.deaths.load();
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Command> commands_;
    bool is_busy_ = false;
    bool stopping_ = false;
    std::thread thread_;
};

struct FunctionOfCuda {
    std::shared_ptr<const ptx::Module> module;  // lives until the last launch has ended
    const ptx::Function* kernel = nullptr;
    std::optional<fake_cuda::Kernel> registered;  // executed instead of the text
};
struct ModuleOfCuda {
    std::shared_ptr<const ptx::Module> module;
    std::map<std::string, FunctionOfCuda> functions;
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
    std::map<std::string, int, std::less<>> failures;
    std::map<std::string, int, std::less<>> lasting_failures;
    int64_t calls_until_failure = -1;
    int failure_of_call = 0;
    const char* failed_call = nullptr;
    std::map<std::string, uint64_t, std::less<>> calls;
    std::shared_mutex executing;  // shared: streams that execute; exclusive: what must not run beside them
    std::map<std::string, uint64_t> bytes;  // copied, allocated
    std::atomic<bool> is_held{false};
    int driver_version = 12040;
    unsigned processor = 90;  // 90: sm_90
    bool assembles = false;  // PTX is passed to NVIDIA's assembler, too
    std::string last_fault;
    struct Mapping {
        uint64_t size;
        MemoryHandle handle;
        uint64_t devices = 0;  // with access, as bits
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
    // What kernels on `device` may use: mapped memory to which it has access, and host memory that is pinned.
    [[nodiscard]] std::vector<ptx::Range> memory_of(int device);
};
State& state();
// The streams of `context` execute nothing more, from when it returns. As with `lost_by`, but streams made later work.
void kill_streams(ContextOfCuda& context);
uint64_t now_ns();
extern thread_local ContextOfCuda* current;
// How often the calling thread has called each function; needs no memory.
uint64_t& calls_here(const char* name);

// Runs one grid on the calling thread.
void run_grid(const fake_cuda::Kernel& kernel, const unsigned (&grid)[3], uint64_t dynamic_bytes,
              const std::vector<std::byte>& parameter);

} // namespace fake
} // namespace polder::cuda
