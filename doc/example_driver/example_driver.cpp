#include "example_driver.h"

#include <base/mutex.h>
#include <bufalloc/region_allocator.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <new>
#include <set>
#include <thread>

namespace polder::example {
namespace {

using driver::CopyOperation;
using driver::Timepoint;

constexpr uint64_t memory_bytes = uint64_t{64} << 20;
constexpr uint64_t local_memory_bytes = uint64_t{32} * 1024;
// The stack of a std::thread has 8 MiB; the driver's own functions use some of it.
constexpr uint64_t kernel_stack_bytes = uint64_t{7} << 20;

uint64_t clock_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// --- memory ---

// The device's memory. The addresses that Polder sees begin at `first_address` and mean nothing to the host;
// `resolve` turns them into where the bytes are. A driver for real hardware has its API's addresses instead.
class DeviceMemory {
public:
    [[nodiscard]] Result<driver::Memory> reserve(ByteCount size) {
        Lock lock(mutex_);
        const auto block = region_.allocate(size, Alignment{4096});
        if (!block)
            return fail(Status::mem_object_allocation_failure);
        blocks_.emplace(block->offset, *block);
        return driver::Memory{DeviceAddress{first_address}.plus(block->offset), block->size.value};
    }
    void release(driver::Memory memory) {
        Lock lock(mutex_);
        const auto found = blocks_.find(memory.address.value - first_address);
        region_.free(found->second);
        blocks_.erase(found);
    }
    [[nodiscard]] ByteCount available() const {
        Lock lock(mutex_);
        return region_.free_bytes();
    }
    // Null stays null: a kernel may compare a pointer with null.
    [[nodiscard]] std::byte* resolve(DeviceAddress address) const {
        return address.value == 0 ? nullptr : bytes_.get() + (address.value - first_address);
    }

private:
    static constexpr uint64_t first_address = uint64_t{1} << 44;
    static constexpr std::align_val_t alignment{4096};
    struct Free {
        void operator()(std::byte* bytes) const { ::operator delete[](bytes, alignment); }
    };

    const std::unique_ptr<std::byte[], Free> bytes_{new (alignment) std::byte[memory_bytes]};
    mutable Mutex mutex_;
    RegionAllocator region_ POLDER_GUARDED_BY(mutex_){
        {DeviceAddress{first_address}, ByteCount{memory_bytes}, Alignment{4096}}};
    std::map<uint64_t, RegionAllocator::Block> blocks_ POLDER_GUARDED_BY(mutex_);
};

// --- kernels ---

struct ExampleKernel final : driver::LoadedKernel {
    explicit ExampleKernel(const driver::HostCode& loaded)
        : LoadedKernel({.local_bytes = loaded.local_bytes,
                        .private_bytes_per_work_item = loaded.private_bytes_per_work_item,
                        .preferred_multiple = loaded.preferred_multiple}),
          code(loaded) {}
    const driver::HostCode code;
};

// Memory for one work-group at a time, aligned as the calling convention demands.
class AlignedBytes {
public:
    explicit AlignedBytes(uint64_t size)
        : bytes_(static_cast<std::byte*>(::operator new(size + 1, std::align_val_t{local_memory_alignment}))) {}
    AlignedBytes(const AlignedBytes&) = delete;
    AlignedBytes& operator=(const AlignedBytes&) = delete;
    ~AlignedBytes() { ::operator delete(bytes_, std::align_val_t{local_memory_alignment}); }
    [[nodiscard]] std::byte* get() const { return bytes_; }

private:
    std::byte* bytes_;
};

void print(void*, const char* text, size_t size) { std::fwrite(text, 1, size, stdout); }

// Everything of a launch that must outlive the call that submitted it.
struct Launch {
    const ExampleKernel* kernel;
    LaunchContext context;
    std::vector<std::byte> arguments;
    uint64_t items_per_group = 1;

    Launch(const driver::LaunchOperation& operation, const DeviceMemory& memory)
        : kernel(static_cast<const ExampleKernel*>(operation.kernel)), context{},
          arguments(operation.arguments.begin(), operation.arguments.end()) {
        for (const uint32_t offset : operation.pointer_offsets) {
            DeviceAddress address;
            std::memcpy(&address, arguments.data() + offset, sizeof address);
            const std::byte* const pointer = memory.resolve(address);
            std::memcpy(arguments.data() + offset, &pointer, sizeof pointer);
        }
        context.work_dim = operation.work_dim;
        for (uint32_t d = 0; d < 3; ++d) {
            const bool used = d < operation.work_dim;
            context.global_offset[d] = used ? operation.global_offset[d] : 0;
            context.global_size[d] = used ? operation.global_size[d] : 1;
            context.local_size[d] = used ? operation.local_size[d] : 1;
            context.num_groups[d] = (context.global_size[d] + context.local_size[d] - 1) / context.local_size[d];
            items_per_group *= context.local_size[d];
        }
        context.local_bytes = static_cast<uint32_t>(kernel->code.local_bytes + operation.local_argument_bytes);
        context.program_variables = memory.resolve(operation.program_variables);
        context.print = print;
    }

    void run() const {
        const AlignedBytes local(context.local_bytes);
        const AlignedBytes scratch(kernel->code.scratch_bytes_per_work_item * items_per_group + 4096);
        // Arguments may be loaded with vector instructions.
        const AlignedBytes aligned_arguments(arguments.size());
        if (!arguments.empty())
            std::memcpy(aligned_arguments.get(), arguments.data(), arguments.size());
        uint64_t group[3];
        for (group[2] = 0; group[2] < context.num_groups[2]; ++group[2])
            for (group[1] = 0; group[1] < context.num_groups[1]; ++group[1])
                for (group[0] = 0; group[0] < context.num_groups[0]; ++group[0])
                    kernel->code.function(aligned_arguments.get(), &context, group, local.get(), scratch.get());
        std::fflush(stdout);
    }
};

// --- queues ---

// A queue is a thread with a list of operations to execute.
class ExampleQueue final : public driver::Queue {
public:
    explicit ExampleQueue(const DeviceMemory& memory) : memory_(memory), thread_([this] { work(); }) {}
    ~ExampleQueue() override {
        {
            Lock lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }

    Timepoint copy(const CopyOperation& operation, const driver::Submission& submission) override {
        const auto resolve = [this](const CopyOperation::End& end) {
            return end.place == CopyOperation::Place::device ? memory_.resolve(end.address) : end.address.host();
        };
        const std::byte* const from = resolve(operation.from);
        std::byte* const to = resolve(operation.to);
        return submit(submission, [from, to, operation] {
            const auto offset = [](const driver::RectLayout& layout, uint64_t y, uint64_t z) {
                return y * layout.row_pitch + z * layout.slice_pitch;
            };
            for (uint64_t z = 0; z < operation.shape.slices; ++z)
                for (uint64_t y = 0; y < operation.shape.rows; ++y)
                    std::memcpy(to + offset(operation.to.layout, y, z), from + offset(operation.from.layout, y, z),
                                operation.shape.row_bytes);
        });
    }
    Timepoint fill(const driver::FillOperation& operation, const driver::Submission& submission) override {
        std::byte* const to = memory_.resolve(operation.address);
        std::vector<std::byte> pattern(operation.pattern.begin(), operation.pattern.end());
        return submit(submission, [to, size = operation.size, pattern = std::move(pattern)] {
            for (uint64_t done = 0; done < size; done += pattern.size())
                std::memcpy(to + done, pattern.data(), pattern.size());
        });
    }
    Timepoint launch(const driver::LaunchOperation& operation, const driver::Submission& submission) override {
        return submit(submission, [launch = Launch(operation, memory_)] { launch.run(); });
    }
    Timepoint call(const driver::HostOperation& operation, const driver::Submission& submission) override {
        return submit(submission, [operation] { operation.function(operation.data); });
    }
    Timepoint marker(const driver::Submission& submission) override {
        return submit(submission, [] {});
    }

    // Nothing to do: the thread begins with each operation at once.
    void flush() override {}
    void wait(uint64_t value) override {
        Lock lock(mutex_);
        while (completed() < value)
            changed_.wait(mutex_);
    }
    [[nodiscard]] Status status(uint64_t value) const override {
        Lock lock(mutex_);
        return failed_.contains(value) ? Status::exec_status_error_for_events_in_wait_list : Status::success;
    }

private:
    struct Task {
        std::vector<Timepoint> waits;
        driver::OperationTimes* times;
        std::function<void()> run;
    };

    Timepoint submit(const driver::Submission& submission, std::function<void()> run) {
        Task task{{submission.waits.begin(), submission.waits.end()}, submission.times, std::move(run)};
        Lock lock(mutex_);
        tasks_.push_back(std::move(task));
        changed_.notify_all();
        return {this, ++submitted_};
    }

    bool next(Task& task) {
        Lock lock(mutex_);
        while (tasks_.empty() && !stopping_)
            changed_.wait(mutex_);
        if (tasks_.empty())
            return false;
        task = std::move(tasks_.front());
        tasks_.pop_front();
        return true;
    }

    void work() {
        for (Task task; next(task);) {
            // Other queues may delay their work until they are flushed. Sleeping here blocks no other queue,
            // and cannot deadlock: waits are for earlier submissions only.
            for (const Timepoint point : task.waits)
                if (!point.is_complete() && point.queue != this) {
                    point.queue->flush();
                    point.queue->wait(point.value);
                }
            execute(task);
        }
    }

    void execute(const Task& task) {
        const uint64_t value = completed_.load(std::memory_order_relaxed) + 1;
        started_.store(value, std::memory_order_release);
        if (task.times)
            task.times->start(clock_ns());
        // An operation needs the results of those it waits for: if one of them failed, it fails too.
        const bool fails = std::ranges::any_of(task.waits, [](const Timepoint& point) {
            return point.queue && point.queue->status(point.value) != Status::success;
        });
        if (!fails)
            task.run();
        if (task.times)
            task.times->end(clock_ns());
        Lock lock(mutex_);
        if (fails)
            failed_.insert(value);
        completed_.store(value, std::memory_order_release);
        changed_.notify_all();
    }

    const DeviceMemory& memory_;
    mutable Mutex mutex_;
    ConditionVariable changed_;
    std::set<uint64_t> failed_ POLDER_GUARDED_BY(mutex_);
    std::deque<Task> tasks_ POLDER_GUARDED_BY(mutex_);
    uint64_t submitted_ POLDER_GUARDED_BY(mutex_) = 0;
    bool stopping_ POLDER_GUARDED_BY(mutex_) = false;
    std::thread thread_;  // last: it uses all of the above
};

// --- device and driver ---

class ExampleDevice final : public driver::Device {
public:
    explicit ExampleDevice(SpaceId space) {
        info_.name = "example";
        info_.vendor = "Polder";
        info_.driver_version = "1";
        info_.type = driver::DeviceType::accelerator;
        info_.space = space;
        info_.memory_bytes = memory_bytes;
        info_.code.local_memory_bytes = local_memory_bytes;
        info_.local_memory_is_dedicated = true;
        info_.native_kernels = false;  // they could not touch its memory
    }

    [[nodiscard]] const driver::DeviceInfo& info() const override { return info_; }
    [[nodiscard]] Result<driver::Memory> reserve_memory(ByteCount size) override { return memory_.reserve(size); }
    void release_memory(driver::Memory memory) override { memory_.release(memory); }
    [[nodiscard]] ByteCount available_memory() const override { return memory_.available(); }
    [[nodiscard]] Result<std::unique_ptr<driver::Queue>> create_queue(driver::QueueRole) override {
        return std::make_unique<ExampleQueue>(memory_);
    }
    [[nodiscard]] Result<std::unique_ptr<driver::LoadedKernel>> load(const driver::KernelCode& code) override {
        // Always host code, because info().code asks for no other format.
        const auto& host_code = std::get<driver::HostCode>(code);
        if (host_code.stack_bytes > kernel_stack_bytes)
            return fail(Status::out_of_resources);
        return std::make_unique<ExampleKernel>(host_code);
    }
    [[nodiscard]] Result<std::unique_ptr<driver::Device>> create_sub_device(std::span<const uint32_t>) override {
        return fail(Status::device_partition_failed);  // never called: max_sub_devices is 0
    }
    [[nodiscard]] uint64_t now_ns() const override { return clock_ns(); }

private:
    driver::DeviceInfo info_;
    DeviceMemory memory_;
};

class ExampleDriver final : public driver::Driver {
    [[nodiscard]] std::string_view name() const override { return "example"; }
    [[nodiscard]] uint32_t count() const override { return 0; }
    [[nodiscard]] Result<std::unique_ptr<driver::Device>> open(uint32_t, SpaceId space, std::string_view) override {
        return std::make_unique<ExampleDevice>(space);
    }
};

}  // namespace

std::unique_ptr<driver::Driver> make_driver() { return std::make_unique<ExampleDriver>(); }

}  // namespace polder::example
