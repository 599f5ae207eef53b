// BlockRun: executes the blocks that the kernels of one launch enqueue on the device (polder/device_enqueue_abi.h).
//
// A block is executed when the kernel that enqueued it and the events that it waits for are complete; otherwise in the order of enqueueing. One
// loop executes all blocks, so blocks that enqueue each other use no more stack. A block's event is complete when the block and all blocks that it
// enqueued are. The launch is complete when no block is left. It fails when a block waits for an event that no block will complete.
//
// Lives on the stack of the thread that executes the launch. Any thread that executes work-groups may call the functions for kernels.
#pragma once

#include <base/mutex.h>

#include <host/operation.h>
#include <host/worker_pool.h>
#include <list>
#include <map>
#include <memory>
#include <polder/device_enqueue_abi.h>
#include <vector>

namespace polder::devices {

class BlockRun {
public:
    BlockRun(LaunchRecord& launch, WorkerPool& pool, Workspace& workspace);
    BlockRun(const BlockRun&) = delete;
    BlockRun& operator=(const BlockRun&) = delete;
    ~BlockRun();

    // Executes every block, after the launch's own kernel.
    [[nodiscard]] Status finish();

private:
    struct Free {
        void operator()(std::byte* memory) const;
    };
    using Memory = std::unique_ptr<std::byte, Free>;

    // A kernel that runs or has run, or a block that waits. A kernel calls the functions (DeviceEnqueue) of its command.
    struct Command final : DeviceEnqueue {
        Command(BlockRun& of, Command* by) : run(of), parent(by) {}
        EnqueueStatus enqueue(const BlockRequest& request) override { return run.enqueue(*this, request); }
        uint32_t query(BlockQuery what, const char* block, const BlockRange* of) override {
            return run.query(what, block, of);
        }
        uint64_t default_queue() override { return run.launch_.blocks.default_queue; }
        uint64_t create_user_event() override { return run.create_user_event(); }
        void set_user_event_status(uint64_t of, int32_t status) override { run.set_status(of, status); }
        void retain_event(uint64_t which) override { run.retain(which); }
        void release_event(uint64_t which) override { run.release(which); }
        bool is_valid_event(uint64_t which) override { return run.is_valid(which); }
        void capture_execution_time(uint64_t of, uint64_t* value) override { run.capture(of, value); }

        BlockRun& run;
        Command* const parent;  // null: the launch's own kernel
        std::list<Command>::iterator place;
        const HostKernel* kernel = nullptr;  // null: a marker
        BlockRange range{};
        Memory arguments;
        uint64_t local_bytes = 0;
        std::vector<uint64_t> waits;
        uint64_t event = null_event;
        uint64_t queue = 0;
        uint64_t queue_bytes = 0;
        uint64_t start_ns = 0;
        uint64_t end_ns = 0;
        uint32_t unfinished = 1;  // how many of the command itself and the commands that it enqueued are not complete
    };

    struct Event {
        uint32_t generation = 0;
        uint32_t references = 0;  // how many references kernels have
        uint32_t waiting = 0;  // commands that wait for it, and the one that completes it
        int32_t status = 0;  // above 0: not complete; below: an error
        bool is_user = false;
        uint64_t execution_ns = 0;
        uint64_t completion_ns = 0;
        uint64_t* capture = nullptr;
    };

    EnqueueStatus enqueue(Command& parent, const BlockRequest& request) POLDER_EXCLUDES(mutex_);
    EnqueueStatus check(const BlockRequest& request, Command& command) const;
    EnqueueStatus fill_arguments(const BlockRequest& request, Command& command) const;
    // `only` has one command, which is moved to the list of waiting commands.
    EnqueueStatus add(const BlockRequest& request, std::list<Command>& only) POLDER_REQUIRES(mutex_);
    uint32_t query(BlockQuery what, const char* block, const BlockRange* range) const;
    uint64_t create_user_event() POLDER_EXCLUDES(mutex_);
    void set_status(uint64_t event, int32_t status) POLDER_EXCLUDES(mutex_);
    void retain(uint64_t event) POLDER_EXCLUDES(mutex_);
    void release(uint64_t event) POLDER_EXCLUDES(mutex_);
    bool is_valid(uint64_t event) POLDER_EXCLUDES(mutex_);
    void capture(uint64_t event, uint64_t* value) POLDER_EXCLUDES(mutex_);

    // Makes an event, in the place of an unused one if there is one. null_event when there are too many.
    uint64_t new_event(bool is_user) POLDER_REQUIRES(mutex_);
    // Null when there is no such event.
    Event* find(uint64_t event) POLDER_REQUIRES(mutex_);
    void drop_unused(Event& event) POLDER_REQUIRES(mutex_);
    void complete_event(Event& event, int32_t status) POLDER_REQUIRES(mutex_);
    // Begins the first command whose events are complete, and returns it; null when there is none.
    [[nodiscard]] Command* begin_next() POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool is_ready(const Command& command) POLDER_REQUIRES(mutex_);
    [[nodiscard]] bool has_failed_wait(Command& command) POLDER_REQUIRES(mutex_);

    Status execute(Command& command) POLDER_EXCLUDES(mutex_);
    // Ends `command`, which was executed with `status`, and the commands that waited only for it.
    void end(Command& command, Status status) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] const HostKernel* find_block(const char* name) const;

    LaunchRecord& launch_;
    WorkerPool& pool_;
    Workspace& workspace_;
    Command root_;
    Mutex mutex_;
    std::list<Command> waiting_ POLDER_GUARDED_BY(mutex_);  // in order of enqueueing
    std::list<Command> begun_ POLDER_GUARDED_BY(mutex_);  // until the commands that they enqueued are complete
    std::map<uint64_t, uint64_t> queue_bytes_ POLDER_GUARDED_BY(mutex_);  // by queue: commands not begun
    std::vector<Event> events_ POLDER_GUARDED_BY(mutex_);
    std::vector<uint32_t> free_events_ POLDER_GUARDED_BY(mutex_);
};

}  // namespace polder::devices
