// Submitting a launch: list the uses of all buffers, call Domain::launch, and in its callback copy the packed arguments, write the
// addresses, and submit to the driver queue. All temporary arrays are on the stack when they are small.
#include <memory/launch_trace.h>
#include <runtime/launch.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

namespace polder::runtime {
namespace {

constexpr Alignment local_alignment{local_memory_alignment};

// An array of `size` uninitialized values, on the stack when there are few.
template <class T, uint32_t few>
class Scratch {
public:
    explicit Scratch(size_t size) : size_(size) { room_.reserve(size); }
    [[nodiscard]] std::span<T> values() { return {room_.data(), size_}; }

private:
    SmallVector<T, few> room_;
    const size_t size_;
};

void put_address(std::span<std::byte> block, size_t offset, DeviceAddress address) {
    std::memcpy(block.data() + offset, &address.value, sizeof address.value);
}

// Copies the image's descriptor to the packed arguments. The launch writes the address of the first element to its first member.
void put_descriptor(std::span<std::byte> block, size_t offset, const ImageShape& image) {
    const ImageDescriptor descriptor = image.descriptor();
    std::memcpy(block.data() + offset, &descriptor, sizeof descriptor);
}

// Gives each __local argument an offset after the kernel's own local memory. Returns the end of the last one, in bytes.
uint64_t place_locals(const LoadedCode& code, const KernelArguments& arguments, std::span<std::byte> block) {
    uint64_t end = code.limits().local_bytes;
    for (const KernelArguments::Local& local : arguments.locals) {
        const uint64_t begin = local_alignment.round_up(end);
        if (!block.empty())
            put_address(block, local.offset, DeviceAddress{begin});
        end = begin + local.bytes;
    }
    return end;
}

}  // namespace

uint64_t local_bytes_used(const LoadedCode& code, const KernelArguments& arguments) {
    return place_locals(code, arguments, {});
}

void LaunchCommand::keep() {
    kept_.push_back(Ref<const RefCounted>::share(code_.keeper));
    kept_.push_back(Ref<const RefCounted>::share(arguments_));
    buffers_.add_references(kept_);
}

// Reserves memory for all buffers of a command, or for none. Usually all of them have memory already.
Result<void> LaunchCommand::reserve(const Queue& queue) const {
    for (size_t i = 0; i < buffers_.size(); ++i)
        if (buffers_[i] && !buffers_[i]->storage().has_all(queue.space()) && access_of(i) != Access::none) [[unlikely]]
            return reserve_from(i, queue);
    return {};
}

[[gnu::noinline]] Result<void> LaunchCommand::reserve_from(size_t first, const Queue& queue) const {
    memory::Domain& domain = queue.context().domain();
    if (first + 1 == buffers_.size()) [[likely]]
        return domain.reserve(buffers_[first]->storage(), buffers_[first]->range(), queue.space(),
                              queue.only_driver_queue());
    SmallVector<memory::Use, 8> missing;
    for (size_t i = first; i < buffers_.size(); ++i)
        if (buffers_[i] && access_of(i) != Access::none &&
            !domain.is_reserved(buffers_[i]->storage(), buffers_[i]->range(), queue.space()))
            missing.push_back({&buffers_[i]->storage(), buffers_[i]->range()});
    if (missing.empty())
        return {};
    return domain.reserve(missing.view(), queue.space(), queue.only_driver_queue());
}

memory::Announcement LaunchCommand::announce(const Queue& queue) const {
    std::vector<memory::Use> uses;
    for (size_t i = 0; i < buffers_.size(); ++i)
        if (buffers_[i] && access_of(i) != Access::none)
            uses.push_back({&buffers_[i]->storage(), buffers_[i]->range()});
    return {queue.context().domain(), std::move(uses), queue.space()};
}

LaunchCommand::ArgumentPlace LaunchCommand::place_of(size_t buffer) const {
    if (buffer >= arguments_->pointers.size())
        return {};
    const KernelArguments::Pointer& pointer = arguments_->pointers[buffer];
    if (pointer.buffer) [[likely]]
        return {pointer.offset, 0, buffers_[buffer]->image()};
    return {pointer.offset, DeviceAddress::of(pointer.address.pointer).value -
                                DeviceAddress::of(buffers_[buffer]->host_pointer()).value};
}

size_t LaunchCommand::list_uses(std::span<memory::Use> uses, std::span<ArgumentPlace> places) const {
    size_t count = 0;
    for (size_t i = 0; i < buffers_.size(); ++i) {
        const Access access = access_of(i);
        if (!buffers_[i] || access == Access::none)
            continue;
        uses[count] = {&buffers_[i]->storage(), buffers_[i]->range(), access};
        places[count++] = place_of(i);
    }
    return count;
}

Result<driver::Timepoint> LaunchCommand::submit(Queue& queue, const memory::Execution& execution) const {
    Scratch<memory::Use, 16> uses(buffers_.size());
    Scratch<ArgumentPlace, 16> places(buffers_.size());
    const size_t count = list_uses(uses.values(), places.values());
    const auto submit = [&](driver::Waits waits, std::span<const DeviceAddress> addresses) {
        return launch(execution.queue, {waits, execution.times}, places.values().first(count), addresses);
    };
    driver::Timepoint done;
    if (count == 0) {
        done = submit(execution.waits, {});
    } else {
        POLDER_ASSIGN(launched, queue.context().domain().launch(execution, uses.values().first(count), submit));
        done = launched;
    }
    if (memory::trace::enabled())  // not [[unlikely]]: then recording would execute code on another page
        trace(execution, done, uses.values().first(count));
    queue.keep_alive(*code_.keeper, done);
    return done;
}

// Apart from `trace`, which then needs no stack frame.
[[gnu::noinline]] void LaunchCommand::trace_first(const memory::Execution& execution, driver::Timepoint done,
                                                  std::span<const memory::Use> uses) const {
    const uint32_t name = memory::trace::record_text(code_.info->name);
    std::atomic_ref<uint32_t>(code_.code->trace_text).store(name, std::memory_order_relaxed);
    memory::trace::record_launch(uses, done, execution.space, name);
}

void LaunchCommand::trace(const memory::Execution& execution, driver::Timepoint done,
                          std::span<const memory::Use> uses) const {
    const uint32_t name = std::atomic_ref<uint32_t>(code_.code->trace_text).load(std::memory_order_relaxed);
    if (name == 0) [[unlikely]]
        return trace_first(execution, done, uses);
    memory::trace::record_launch(uses, done, execution.space, name);
}

driver::Timepoint LaunchCommand::launch(driver::Queue& queue, const driver::Submission& submission,
                                        std::span<const ArgumentPlace> places,
                                        std::span<const DeviceAddress> addresses) const {
    Scratch<std::byte, 512> block(arguments_->packed.size());
    std::ranges::copy(arguments_->packed, block.values().begin());
    for (size_t i = 0; i < places.size(); ++i) {
        const ArgumentPlace& place = places[i];
        if (place.image) [[unlikely]]
            put_descriptor(block.values(), place.offset, *place.image);
        if (place.offset != ArgumentPlace{}.offset)
            put_address(block.values(), place.offset, addresses[i].plus(place.displacement));
    }
    const uint64_t local_end = place_locals(*code_.code, *arguments_, block.values());
    driver::LaunchOperation operation;
    operation.kernel = code_.code->loaded.get();
    operation.work_dim = range_.work_dim;
    std::ranges::copy(range_.offset, operation.global_offset);
    std::ranges::copy(range_.global, operation.global_size);
    std::ranges::copy(range_.local, operation.local_size);
    operation.arguments = block.values();
    operation.pointer_offsets = code_.code->pointer_offsets;
    operation.local_argument_bytes = local_end - code_.code->limits().local_bytes;
    operation.program_variables = code_.program_variables;
    operation.blocks = code_.blocks;
    return queue.launch(operation, submission);
}

// One submission of a native kernel; the queue keeps it until the driver has called it.
struct NativeCall final : RefCounted {
    NativeCall(NativeFunction native, std::vector<std::byte> block) : function(native), arguments(std::move(block)) {}
    NativeFunction function;
    std::vector<std::byte> arguments;
    static void run(void* data) {
        auto* const call = static_cast<NativeCall*>(data);
        call->function(call->arguments.empty() ? nullptr : call->arguments.data());
    }
};

Result<void> NativeCommand::reserve(const Queue& queue) const {
    SmallVector<memory::Use, 8> uses;
    for (size_t i = 0; i < buffers_.size(); ++i)
        uses.push_back({&buffers_[i]->storage(), buffers_[i]->range()});
    return queue.context().domain().reserve(uses.view(), host_space, queue.only_driver_queue());
}

Result<driver::Timepoint> NativeCommand::submit(Queue& queue, const memory::Execution& execution) const {
    const auto call = make_ref<NativeCall>(function_, arguments_);
    driver::Timepoint done;
    if (buffers_.size() == 0) {
        done = execution.queue.call({&NativeCall::run, call.get()}, {execution.waits, execution.times});
    } else {
        // The function runs on the host and uses host memory, also when the device has memory of its own.
        const memory::Execution on_host{execution.queue, host_space, execution.waits, execution.times};
        Scratch<memory::Use, 16> uses(buffers_.size());
        for (size_t i = 0; i < buffers_.size(); ++i)
            uses.values()[i] = {&buffers_[i]->storage(), buffers_[i]->range(), Access::read_write};
        const auto submit = [&](driver::Waits waits, std::span<const DeviceAddress> addresses) {
            for (size_t i = 0; i < addresses.size(); ++i)
                put_address(call->arguments, offsets_[i], addresses[i]);
            return execution.queue.call({&NativeCall::run, call.get()}, {waits, execution.times});
        };
        POLDER_ASSIGN(launched, queue.context().domain().launch(on_host, uses.values(), submit));
        done = launched;
    }
    queue.keep_alive(*call, done);
    return done;
}

}  // namespace polder::runtime
