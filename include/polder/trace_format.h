// The format of memory traces (POLDER_TRACE), version 3. doc/trace.md explains it with an example.
//
// A file is a header and chunks of one size. One thread fills a chunk from the front; an event of the kind `none` ends it. The order of a
// thread's chunks is that of their numbers, not that of their places in the file. The recording process maps the file, so that all events
// it has completed are in the file even when it is killed. All numbers are little-endian; sizes and offsets are bytes.
#pragma once

#include <cstdint>
#include <type_traits>

namespace polder::trace {

inline constexpr char magic[8] = {'P', 'O', 'L', 'D', 'T', 'R', 'C', '\n'};
inline constexpr uint32_t version = 3;
inline constexpr uint32_t chunk_magic = 0x4B4E4843;  // "CHNK"

struct FileHeader {
    char magic[8];
    uint32_t version;
    uint32_t chunk_bytes;  // a chunk with its header; the first one begins at this offset
    uint64_t start_ns;  // CLOCK_MONOTONIC when recording began
    uint64_t start_unix_ns;  // CLOCK_REALTIME at that moment
    uint32_t process;
    uint32_t reserved;
    uint8_t rest[24];
};
static_assert(sizeof(FileHeader) == 64);

// Event times are ticks of a counter. Each chunk names a moment in both ticks and nanoseconds: the line through the
// first and the last chunk's moments, or `ns_per_tick` when there is one chunk, turns ticks into time.
struct ChunkHeader {
    uint32_t magic;
    uint32_t thread;  // threads are numbered from 0 in the order of their first events
    uint64_t ticks;
    uint64_t ns;  // CLOCK_MONOTONIC
    double ns_per_tick;  // estimated when recording began
    // Chunks of one thread are numbered from 1. Two chunks have the same number when recording ended after the writer had copied a chunk
    // and before it began the next one in its place: a reader uses the one with more events. 0 in older files, which have no such pairs.
    uint64_t number;
    uint8_t rest[8];
};
static_assert(sizeof(ChunkHeader) == 48);

enum class Kind : uint8_t {
    none,
    space,  // a memory space: space, size = its total bytes, extra = page size of regions that grow (0: they do not grow)
    region_reserve,  // space, address, size
    region_release,  // likewise
    lease,  // space, address, size = as requested, extra = bytes of the block, queue = the consumer's
    free,  // space, address, size of the block; queue and value: a timepoint it waits for (queue 0: none)
    out_of_memory,  // a command got no memory: space, size = missing, extra = alignment, storage = text id of the report
    storage_create,  // storage, size
    storage_destroy,  // storage
    replica,  // storage has memory: space, address, size, offset in the storage = extra
    transfer,  // from space to other_space (both the same: within a memory): storage, address = offset, size, queue, value
    evict,  // storage gave up memory: space, address = offset, size
    map,  // storage, address = offset, size; flags: Access bits
    unmap,  // likewise
    launch,  // space, queue, value, storage = text id of the kernel's name, size = number of `use` events that follow
    use,  // storage, address = offset, size; flags: Access bits
    completed,  // queue's timeline has reached value
    text,  // storage = id, size = length; the characters fill the events that follow
    refused,  // as out_of_memory, but an allocator refused: compaction, eviction or waiting may still make room
    repeats,  // launches that differ from earlier launches of the chunk only in time and value: see Repeat
};

enum Flags : uint8_t {
    reads = 1,
    writes = 2,
    commanded = 4,  // of a transfer: by a command of the application, which `reads` or `writes` the storage
    whole_uses = 16,  // of a launch: see WholeUses
    in_slot = 32,  // of a launch: `other_space` is its slot (see Repeat), and its `use` events are in the same chunk
    more_follow = 8,  // of a free: the next event of the thread names one more timepoint of the same block
};

// The uses of a launch that uses at most two storages as a whole. They are in the event's `address`, the first use in the low 32 bits, and
// no `use` events follow. Each half is a storage's number * 4 + Access bits.
struct WholeUses {
    static constexpr uint32_t most = 2;
    static constexpr uint64_t storages_max = uint64_t{1} << 30;  // only smaller numbers of storages fit into a half
    [[nodiscard]] static constexpr uint64_t half(uint64_t storage, uint8_t access) { return storage << 2 | access; }
    [[nodiscard]] static constexpr uint64_t storage_of(uint64_t address, uint32_t use) {
        return static_cast<uint32_t>(address >> (32 * use)) >> 2;
    }
    [[nodiscard]] static constexpr uint8_t access_of(uint64_t address, uint32_t use) {
        return static_cast<uint8_t>(address >> (32 * use) & 3);
    }
};

// A launch with the flag whole_uses or in_slot is remembered in slot `other_space` of its chunk. The last 32 bytes of a `repeats` event
// describe up to eight later launches that repeat the launch in a slot (same kernel, queue and uses). `flags` is their number, which grows
// until the thread writes another event. A launch without a time took place between the thread's launches before and after it: while a
// thread launches more often than every `fast_ticks` ticks, only the first launch of every second event has a time. The other events have the
// time of the event before.
struct Repeat {
    static constexpr uint32_t most = 8;
    static constexpr uint32_t slots = 64;
    static constexpr uint64_t unit = 8;
    static constexpr uint32_t no_time = (1 << 18) - 1;
    static constexpr uint64_t value_max = (1 << 8) - 1;
    static constexpr uint64_t fast_ticks = 4096;
    uint32_t time : 18;  // since the event's time, in `unit` ticks; or no_time
    uint32_t value : 8;  // minus that of the launch in the slot, which this launch then replaces
    uint32_t slot : 6;
};
static_assert(sizeof(Repeat) == 4);

// The same in files of version 2.
struct Repeat2 {
    static constexpr uint32_t slots = 16;
    uint32_t ticks : 22;  // since the event's time
    uint32_t value : 6;
    uint32_t slot : 4;
};
static_assert(sizeof(Repeat2) == 4);

struct Event {
    uint64_t ticks;
    uint32_t queue;  // numbered from 1; 0: none
    uint8_t space;
    uint8_t other_space;
    uint8_t flags;
    Kind kind;  // written last
    uint64_t storage;
    uint64_t address;
    uint64_t size;
    union {
        uint64_t extra;
        uint64_t value;
    };
};
static_assert(sizeof(Event) == 48 && std::is_trivially_copyable_v<Event>);

}  // namespace polder::trace
