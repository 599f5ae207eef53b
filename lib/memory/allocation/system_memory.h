// SystemMemory: the state of the machine's memory as /proc reports it. A value; sizes are bytes.
//
// With vm.overcommit_memory=2 the system promises no more memory than it has: every writable page counts when it is mapped,
// also with MAP_NORESERVE. Then the rest of the commit limit bounds how much can be allocated, and reserved addresses without memory
// must not be writable.
#pragma once

#include <polder/types.h>
#include <string_view>

namespace polder::memory {

struct SystemMemory {
    ByteCount available;  // the bytes that can be used without swapping; 0: not known
    ByteCount committable;  // the rest of the commit limit
    bool counts_promises = false;  // vm.overcommit_memory is 2

    // The bytes that could be mapped and used.
    [[nodiscard]] ByteCount usable() const {
        return counts_promises && committable < available ? committable : available;
    }
    // From the text of /proc/meminfo and /proc/sys/vm/overcommit_memory.
    [[nodiscard]] static SystemMemory parse(std::string_view meminfo, std::string_view overcommit);
    // Reads the files.
    [[nodiscard]] static SystemMemory now();
    // Reads the file at the first call.
    [[nodiscard]] static bool promises_count();
    // For tests: the files are in `directory`, which outlives the process, instead of /proc. Before any other call.
    static void read_from(const char* directory);
};

}  // namespace polder::memory
