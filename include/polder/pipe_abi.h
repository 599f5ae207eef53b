// A pipe in memory: this header, a turn for each place, the packets. Generated code depends on the layout through
// lib/kernel/cl/pipe.cl: change both together.
//
// A ring for several producers and consumers without locks (D. Vyukov's bounded queue). Packets are numbered from 0 on; number n is at
// place n % packets_max. A place's turn is 2n where packet n may be written, and 2n + 1 where it may be read; reading it makes
// the turn 2 (n + packets_max). Even and odd turns differ in a pipe of one packet, too.
#pragma once

#include <cstdint>

namespace polder {

struct PipeHeader {
    uint64_t packet_bytes;
    uint64_t packets_max;
    uint64_t next_to_write;
    uint64_t next_to_read;
};
static_assert(sizeof(PipeHeader) == 32);

}  // namespace polder
