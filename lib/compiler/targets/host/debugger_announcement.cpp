#include "debugger_announcement.h"

#include <base/mutex.h>

#include <cstdint>

// The names and layouts are GDB's ("JIT Compilation Interface" in its manual).
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

struct polder_jit_code_entry {
    polder_jit_code_entry* next = nullptr;
    polder_jit_code_entry* previous = nullptr;
    const char* file = nullptr;
    uint64_t file_bytes = 0;
};

struct polder_jit_descriptor {
    uint32_t version;
    uint32_t action;
    polder_jit_code_entry* relevant;
    polder_jit_code_entry* first;
};

[[gnu::visibility("default"), gnu::used]] polder_jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};

// The debugger's breakpoint is here.
[[gnu::visibility("default"), gnu::used, gnu::noinline]] void __jit_debug_register_code() {
    asm volatile("" ::: "memory");
}
}
// NOLINTEND(bugprone-reserved-identifier)

namespace polder::compiler {
namespace {

enum DebuggerAction : uint32_t { nothing, registered, unregistered };

// Leaked: kernels may be released while the process exits.
Mutex& mutex() {
    static auto* const instance = new Mutex;
    return *instance;
}

void tell_debugger(DebuggerAction action, polder_jit_code_entry& entry) {
    __jit_debug_descriptor.action = action;
    __jit_debug_descriptor.relevant = &entry;
    __jit_debug_register_code();
    __jit_debug_descriptor.action = nothing;
    __jit_debug_descriptor.relevant = nullptr;
}

} // namespace

struct DebuggerAnnouncement::Entry : polder_jit_code_entry {
    std::string object;
};

DebuggerAnnouncement::DebuggerAnnouncement(std::string object) : entry_(std::make_unique<Entry>()) {
    entry_->object = std::move(object);
    entry_->file = entry_->object.data();
    entry_->file_bytes = entry_->object.size();
    Lock lock(mutex());
    entry_->next = __jit_debug_descriptor.first;
    if (entry_->next != nullptr)
        entry_->next->previous = entry_.get();
    __jit_debug_descriptor.first = entry_.get();
    tell_debugger(registered, *entry_);
}

DebuggerAnnouncement::~DebuggerAnnouncement() {
    Lock lock(mutex());
    (entry_->previous != nullptr ? entry_->previous->next : __jit_debug_descriptor.first) = entry_->next;
    if (entry_->next != nullptr)
        entry_->next->previous = entry_->previous;
    tell_debugger(unregistered, *entry_);
}

} // namespace polder::compiler
