// Instructions of a warp whose name is also that of one of a block.
#pragma once

#include "decoder.h"

namespace polder::ptx {

// bar.warp.sync
void decode_warp_barrier(Line& line);

}  // namespace polder::ptx
