// The state of the fake CUDA library: streams as threads with lists of work, memory, modules, and recorded calls.
#include "fake_state.h"

#include <algorithm>
#include <cfenv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <new>
#include <polder/ptx_abi.h>
#include <vector>

namespace polder::cuda {

void FakeRecord::reach() {
    const std::lock_guard lock(mutex);
    is_reached = true;
    reached_ns = fake::now_ns();
    changed.notify_all();
}

void FakeRecord::wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return is_reached; });
}

StreamOfCuda::StreamOfCuda(ContextOfCuda& owner) : context(owner), thread_([this] { work(); }) {}

StreamOfCuda::~StreamOfCuda() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void StreamOfCuda::append(std::function<void()> command, bool waits) {
    const std::lock_guard lock(mutex_);
    commands_.push_back({std::move(command), waits});
    changed_.notify_all();
}

bool StreamOfCuda::is_idle() {
    const std::lock_guard lock(mutex_);
    return commands_.empty() && !is_busy_;
}

// A lost GPU executes nothing more: its memory may have been released.
void StreamOfCuda::execute(const Command& command) {
    std::shared_lock executing(fake::state().executing, std::defer_lock);
    if (!command.waits)
        executing.lock();
    if (!is_dead())
        command.function();
}

void StreamOfCuda::work() {
    // The rounding mode of the application's thread, which creates this one, does not affect a GPU.
    std::fesetenv(FE_DFL_ENV);
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return stopping_ || !commands_.empty(); });
        if (commands_.empty())
            return;
        Command command = std::move(commands_.front());
        commands_.pop_front();
        is_busy_ = true;
        lock.unlock();
        fake::state().is_held.wait(true);
        execute(command);
        command.function = nullptr;
        lock.lock();
        is_busy_ = false;
    }
}

namespace fake {

thread_local ContextOfCuda* current = nullptr;

uint64_t& calls_here(const char* name) {
    struct Count {
        const char* name;
        uint64_t calls;
    };
    thread_local Count counts[128] = {};
    for (Count& each : counts) {
        if (!each.name)
            each.name = name;
        if (std::strcmp(each.name, name) == 0)
            return each.calls;
    }
    std::abort();  // more functions than CUDA's that the driver calls
}

uint64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

State& state() {
    // Leaked: streams run while the process exits.
    static auto* const all = [] {
        auto* const made = new State;
        const auto number = [](const char* name, uint64_t standard) {
            const char* const text = std::getenv(name);
            return text ? std::strtoull(text, nullptr, 10) : standard;
        };
        made->processor = static_cast<unsigned>(number("FAKE_CUDA_PROCESSOR", 90));
        made->assembles = number("FAKE_CUDA_ASSEMBLES", 0) != 0;
        const uint64_t count = number("FAKE_CUDA_DEVICES", 2);
        for (uint64_t i = 0; i < count; ++i) {
            made->contexts.emplace_back();
            made->contexts.back().device = static_cast<int>(i);
            made->contexts.back().memory_bytes = number("FAKE_CUDA_MEMORY", 256) << 20;
        }
        return made;
    }();
    return *all;
}

void kill_streams(ContextOfCuda& context) {
    const std::unique_lock executing(state().executing);
    ++context.deaths;
}

bool State::is_pinned(const void* begin, uint64_t size) {
    const std::lock_guard lock(mutex);
    const auto* const first = static_cast<const std::byte*>(begin);
    const auto is_within = [&](const std::byte* of, uint64_t length) {
        return of <= first && static_cast<uint64_t>(first - of) + size <= length;
    };
    const auto allocated = pinned.upper_bound(first);
    if (allocated != pinned.begin() && is_within(std::prev(allocated)->first, std::prev(allocated)->second))
        return true;
    const auto known = registered.upper_bound(first);
    return known != registered.begin() && is_within(std::prev(known)->first, std::prev(known)->second.size);
}

bool State::touches_pinned(const std::byte* begin, uint64_t size) const {
    const auto touches = [&](const std::byte* of, uint64_t length) { return of < begin + size && begin < of + length; };
    return std::ranges::any_of(pinned, [&](const auto& one) { return touches(one.first, one.second); }) ||
           std::ranges::any_of(registered, [&](const auto& one) { return touches(one.first, one.second.size); });
}

std::vector<ptx::Range> State::memory_of(int device) {
    const std::lock_guard lock(mutex);
    std::vector<ptx::Range> ranges;
    for (const auto& [address, mapping] : mappings)
        if ((mapping.devices >> device & 1) != 0)
            ranges.push_back({address, address + mapping.size});
    const auto add_host = [&](const std::byte* begin, uint64_t size) {
        const auto address = reinterpret_cast<uintptr_t>(begin);
        ranges.push_back({address, address + size});
    };
    for (const auto& [begin, size] : pinned)
        add_host(begin, size);
    for (const auto& [begin, registration] : registered)
        add_host(begin, registration.size);
    return ranges;
}

namespace {

// What a kernel prints becomes a record with the text as its format.
struct Printer {
    std::byte* ring;
    static void print(void* user, const char* text, size_t size) {
        std::byte* const ring = static_cast<Printer*>(user)->ring;
        const uint64_t format_bytes = (size + 1 + 7) / 8 * 8;
        const uint64_t bytes = sizeof(PtxPrintRecord) + format_bytes;
        auto& header = *reinterpret_cast<PtxPrintRing*>(ring);
        const uint64_t offset = std::atomic_ref(header.used).fetch_add(bytes);
        if (offset + bytes > header.capacity)
            return;
        std::byte* const place = ring + sizeof header + offset;
        const PtxPrintRecord record{static_cast<uint32_t>(bytes), static_cast<uint32_t>(format_bytes), 0, 0};
        std::memcpy(place, &record, sizeof record);
        std::memcpy(place + sizeof record, text, size);
    }
};

class AlignedMemory {
public:
    explicit AlignedMemory(uint64_t size)
        : bytes_(static_cast<std::byte*>(::operator new(size + 1, std::align_val_t{128}))) {}
    AlignedMemory(const AlignedMemory&) = delete;
    AlignedMemory& operator=(const AlignedMemory&) = delete;
    ~AlignedMemory() { ::operator delete(bytes_, std::align_val_t{128}); }
    [[nodiscard]] std::byte* get() const { return bytes_; }

private:
    std::byte* bytes_;
};

} // namespace

void run_grid(const fake_cuda::Kernel& kernel, const unsigned (&grid)[3], uint64_t dynamic_bytes,
              const std::vector<std::byte>& parameter) {
    PtxHiddenArguments hidden;
    std::memcpy(&hidden, parameter.data() + parameter.size() - sizeof hidden, sizeof hidden);
    Printer printer{reinterpret_cast<std::byte*>(static_cast<uintptr_t>(hidden.print_ring))};
    LaunchContext context{};
    uint64_t items = 1;
    for (int d = 0; d < 3; ++d) {
        context.global_offset[d] = hidden.global_offset[d];
        context.global_size[d] = hidden.global_size[d];
        context.local_size[d] = hidden.local_size[d];
        context.num_groups[d] = hidden.num_groups[d];
        items *= hidden.local_size[d];
    }
    context.work_dim = hidden.work_dim;
    context.local_bytes = static_cast<uint32_t>(dynamic_bytes);
    context.program_variables = reinterpret_cast<std::byte*>(static_cast<uintptr_t>(hidden.program_variables));
    context.print = hidden.print_ring ? Printer::print : nullptr;
    context.print_user = &printer;
    const AlignedMemory arguments(parameter.size());
    std::memcpy(arguments.get(), parameter.data(), parameter.size());
    const AlignedMemory local(dynamic_bytes);
    const AlignedMemory scratch(kernel.scratch_bytes_per_work_item * items + 4096);
    for (uint64_t z = 0; z < grid[2]; ++z)
        for (uint64_t y = 0; y < grid[1]; ++y)
            for (uint64_t x = 0; x < grid[0]; ++x) {
                const uint64_t group[3] = {hidden.group_offset[0] + x, hidden.group_offset[1] + y,
                                           hidden.group_offset[2] + z};
                kernel.function(arguments.get(), &context, group, local.get(), scratch.get());
            }
}

} // namespace fake
} // namespace polder::cuda
