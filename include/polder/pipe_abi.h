// A pipe in memory: this header, then one number for each place (its turn), then the packets. Generated code depends on the layout
// through lib/kernel/cl/pipe.cl: change both together.
//
// A ring for several producers and consumers without locks (D. Vyukov's bounded queue). Packets are numbered from 0; packet n is at
// place n % packets_max. The place's turn says what may be done next: 2n: write packet n; 2n + 1: read packet n. After packet n was read,
// the turn is 2 (n + packets_max). Written and read places have turns of different parity, so a pipe of one packet works, too.
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
