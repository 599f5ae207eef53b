// Frames: slots and local memory of the current calls are two stacks. Addresses of local memory are offsets in the second one, so that
// both may grow.
#include "thread.h"

#include "block.h"

#include <algorithm>

namespace polder::ptx {
namespace {

constexpr uint64_t local_bytes_max = uint64_t{512} << 10;  // what CUDA gives to a thread at most

}  // namespace

void Thread::begin(BlockState& of, const Function& kernel, uint32_t number, std::array<uint32_t, 3> where) {
    block = &of;
    linear = number;
    id = where;
    carry = false;
    near_ = {};
    frames_.clear();
    local_used_ = 0;
    pc = nullptr;
    state = State::ready;
    waits_at = nullptr;
    if (!enter(kernel))
        state = State::ended;
}

uint64_t Thread::run(uint64_t budget) {
    uint64_t executed = 0;
    while (executed < budget) {
        const Instruction& instruction = *pc++;
        ++executed;
        if (!instruction.run(*this, instruction))
            break;
    }
    return executed;
}

bool Thread::fail(Fault fault, const std::string& what) {
    if (block->fault == Fault::none) {
        block->fault = fault;
        const Instruction* const at = pc == nullptr ? nullptr : pc - 1;
        block->what = what + (at == nullptr ? "" : ", line " + std::to_string(at->line)) + ", thread (" +
                      std::to_string(id[0]) + ", " + std::to_string(id[1]) + ", " + std::to_string(id[2]) +
                      ") of block (" + std::to_string(block->id[0]) + ", " + std::to_string(block->id[1]) + ", " +
                      std::to_string(block->id[2]) + ")";
    }
    state = State::ended;
    return false;
}

// --- calls ---

bool Thread::enter(const Function& callee) {
    const uint64_t slots_begin = frames_.empty() ? 0 : frames_.back().slots_begin + frames_.back().function->slots;
    const uint32_t local_begin = (local_used_ + 15) / 16 * 16;
    if (local_begin + uint64_t{callee.local_bytes} > local_bytes_max)
        return fail(Fault::illegal_address, "the stack of " + callee.name + " exceeds local memory");
    frames_.push_back({&callee, pc == nullptr ? nullptr : pc - 1, slots_begin, local_begin});
    if (slots_.size() < slots_begin + callee.slots)
        slots_.resize(std::max<uint64_t>(slots_begin + callee.slots, 2 * slots_.size()));
    local_used_ = local_begin + callee.local_bytes;
    if (local_.size() < local_used_)
        local_.resize(local_used_);
    r = slots_.data() + slots_begin;
    r[0] = local_begin;
    std::ranges::copy(callee.constants, r + callee.slots - callee.constants.size());
    pc = callee.code.data();
    return true;
}

bool Thread::call(const Function& callee, const Call& site) {
    const uint32_t from = frames_.back().local_begin;
    if (!enter(callee))
        return false;
    for (const Passed& passed : site.arguments)
        std::memcpy(local_.data() + frames_.back().local_begin + passed.of_callee,
                    local_.data() + from + passed.of_caller, passed.bytes);
    return true;
}

bool Thread::call_indirect(const IndirectCall& site, uint64_t address) {
    const uint64_t number = (address - function_window) / function_stride;
    const auto functions = block->launch->functions;
    if (address < function_window || number >= functions.size() || address % function_stride != 0)
        return fail(Fault::invalid_pc, "a call of an address that is no function");
    const Function& callee = *functions[number];
    if (callee.parameters.size() != site.arguments.size() || callee.results.size() != site.results.size())
        return fail(Fault::invalid_pc, "a call of " + callee.name + " with another prototype");
    const uint32_t from = frames_.back().local_begin;
    if (!enter(callee))
        return false;
    for (size_t i = 0; i < site.arguments.size(); ++i)
        std::memcpy(local_.data() + frames_.back().local_begin + callee.parameters[i].offset,
                    local_.data() + from + site.arguments[i].offset,
                    std::min(site.arguments[i].bytes, callee.parameters[i].bytes));
    return true;
}

bool Thread::leave() {
    const Frame left = frames_.back();
    frames_.pop_back();
    if (frames_.empty()) {
        state = State::ended;
        return false;
    }
    const Frame& back = frames_.back();
    const Instruction& site = *left.back;
    const auto copy = [&](uint32_t to, uint32_t from, uint32_t bytes) {
        std::memmove(local_.data() + back.local_begin + to, local_.data() + left.local_begin + from, bytes);
    };
    if (site.immediate == 0) {
        for (const Passed& passed : static_cast<const Call*>(site.more)->results)
            copy(passed.of_caller, passed.of_callee, passed.bytes);
    } else {
        const auto& results = static_cast<const IndirectCall*>(site.more)->results;
        for (size_t i = 0; i < results.size(); ++i)
            copy(results[i].offset, left.function->results[i].offset,
                 std::min(results[i].bytes, left.function->results[i].bytes));
    }
    local_used_ = back.local_begin + back.function->local_bytes;
    r = slots_.data() + back.slots_begin;
    pc = left.back + 1;
    return true;
}

bool Thread::is_behind(const Thread& other) const {
    const size_t depth = std::min(frames_.size(), other.frames_.size());
    for (size_t i = 0; i < depth; ++i)
        if (place(i) != other.place(i))
            return place(i) < other.place(i);
    return frames_.size() > other.frames_.size();
}

bool Thread::is_at_same_place(const Thread& other) const {
    if (frames_.size() != other.frames_.size())
        return false;
    for (size_t i = 0; i < frames_.size(); ++i)
        if (place(i) != other.place(i))
            return false;
    return true;
}

// --- memory ---

std::byte* Thread::within(std::byte* begin, uint64_t size, uint64_t offset, uint64_t bytes, const char* what) {
    if (offset > size || bytes > size - offset) {
        fail(Fault::illegal_address, "an access beyond the end of " + std::string(what));
        return nullptr;
    }
    if (offset % bytes != 0) {
        fail(Fault::misaligned_address, "a misaligned access of " + std::string(what));
        return nullptr;
    }
    return begin + offset;
}

std::byte* Thread::pointer(Space space, uint64_t address, uint64_t bytes, Access access) {
    if (space == Space::generic) {
        const uint64_t window = address & ~(window_bytes - 1);
        space = window == shared_window      ? Space::shared
                : window == local_window     ? Space::local
                : window == parameter_window ? Space::parameter
                                             : Space::global;
        if (space != Space::global)
            address -= window;
    }
    switch (space) {
    case Space::shared:
        return within(block->shared.data(), block->launch->shared_bytes, address, bytes, "shared memory");
    case Space::local: return within(local_.data(), local_used_, address, bytes, "local memory");
    case Space::parameter: {
        if (access == Access::write) {
            fail(Fault::illegal_address, "a store to the parameters of a kernel");
            return nullptr;
        }
        const auto parameters = block->launch->parameters;
        return within(const_cast<std::byte*>(parameters.data()), parameters.size(), address, bytes, "the parameters");
    }
    default: return global_pointer(address, bytes, access);
    }
}

std::byte* Thread::other_global_pointer(uint64_t address, uint64_t bytes, Access access) {
    const Range* const range = find(block->launch->memory, address, bytes);
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
    if (range == nullptr || (access == Access::write && !range->is_writable)) {
        fail(Fault::illegal_address, std::string(access == Access::write ? "a store to " : "a load of ") + text +
                                         ", which is not memory of this GPU");
        return nullptr;
    }
    if (address % bytes != 0) {
        fail(Fault::misaligned_address, std::string("a misaligned access of ") + text);
        return nullptr;
    }
    near_ = *range;
    return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address));
}

}  // namespace polder::ptx
