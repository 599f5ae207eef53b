// Reads a trace (polder/trace_format.h) into events in order of time. Tolerates an end in the middle of anything, as a
// killed process leaves it. A value; one thread.
#pragma once

#include <cstdint>
#include <polder/result.h>
#include <polder/trace_format.h>
#include <string>
#include <unordered_map>
#include <vector>

namespace polder::trace {

struct TimedEvent {
    Event event;
    uint64_t ns = 0;  // since recording began
    uint32_t thread = 0;
    uint32_t order = 0;  // in the file
};

struct TraceFile {
    FileHeader header{};
    std::vector<TimedEvent> events;  // without texts; those of a thread in the thread's order
    std::unordered_map<uint64_t, std::string> texts;
    uint64_t chunks = 0;

    [[nodiscard]] const std::string& text(uint64_t id) const {
        static const std::string nothing;
        const auto found = texts.find(id);
        return found == texts.end() ? nothing : found->second;
    }
};

// invalid_value with a reason when it is no trace, or of another version.
[[nodiscard]] Result<TraceFile> read_trace(const std::string& path);

}  // namespace polder::trace
