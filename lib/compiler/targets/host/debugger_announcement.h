// Announces loaded code to GDB and LLDB (GDB's JIT interface: a list of objects in memory and a function with a
// breakpoint that is called when the list changes).
//
// An announcement owns a copy of the object and removes it from the list when it is destroyed. Any thread.
#pragma once

#include <memory>
#include <string>

namespace polder::compiler {

class DebuggerAnnouncement {
public:
    // `object` is an ELF file whose section headers hold the addresses where the sections were loaded.
    explicit DebuggerAnnouncement(std::string object);
    ~DebuggerAnnouncement();
    DebuggerAnnouncement(const DebuggerAnnouncement&) = delete;
    DebuggerAnnouncement& operator=(const DebuggerAnnouncement&) = delete;

private:
    struct Entry;
    std::unique_ptr<Entry> entry_;
};

} // namespace polder::compiler
