// Reads a trace (polder/trace_format.h) into a list of events in order of time. The file may end anywhere, because a
// killed process leaves it so. A value; one thread.
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
    uint32_t order = 0;  // the event's position in the file
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

// invalid_value with a reason when the file is no trace, or has an unknown version.
[[nodiscard]] Result<TraceFile> read_trace(const std::string& path);

}  // namespace polder::trace
