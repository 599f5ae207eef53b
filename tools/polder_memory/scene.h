// What a trace's page shows: the events of a trace as blocks, values over time and amounts. The page decodes this and draws; it sees no events.
#pragma once

#include "trace/trace_file.h"

#include <cstdint>
#include <map>
#include <vector>

namespace polder::tool {

struct Scene {
    // A lease, from its begin until it was freed (or the trace's end).
    struct Block {
        uint64_t begin_ns = 0;
        uint64_t end_ns = 0;
        uint64_t used_ns = 0;  // when its storage was last used meanwhile; before begin_ns: not at all
        uint64_t address = 0;
        uint64_t bytes = 0;
        uint64_t storage = 0;  // 0: not known
    };
    // A space's bytes from this moment on.
    struct Level {
        uint64_t ns = 0;
        uint64_t allocated = 0;
        uint64_t held = 0;  // also released ones that commands in flight use
        uint64_t reserved = 0;
    };
    struct Region {
        uint64_t begin = 0;
        uint64_t end = 0;
    };
    struct Space {
        uint64_t memory_bytes = 0;  // 0: not known
        std::vector<Block> blocks;  // in order of begin_ns
        std::vector<Level> levels;
        std::vector<Region> regions;  // of all blocks; in order, apart
    };
    struct Amount {
        uint64_t ns = 0;
        uint64_t value = 0;
    };
    struct Link {
        uint32_t from = 0;
        uint32_t to = 0;
        auto operator<=>(const Link&) const = default;
    };
    // A command or an allocator that found no room.
    struct Report {
        uint64_t ns = 0;
        uint64_t text = 0;
        uint64_t bytes = 0;
        uint32_t space = 0;
    };

    uint64_t end_ns = 1;
    std::map<uint32_t, Space> spaces;
    std::map<Link, std::vector<Amount>> transfers;  // values: bytes
    std::map<uint32_t, std::vector<Amount>> evictions;  // by space; values: bytes
    std::vector<Amount> launches;  // values: texts, the kernels' names
    std::vector<Report> failures;
    std::vector<Report> refusals;
    // The texts of the kernels that used a storage, in the order of their first uses; at most kernels_max.
    static constexpr size_t kernels_max = 8;
    std::map<uint64_t, std::vector<uint64_t>> kernels_of;
};

[[nodiscard]] Scene make_scene(const trace::TraceFile& trace);

}  // namespace polder::tool
