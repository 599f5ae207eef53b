// The order of a function's blocks in its code.
//
// Blocks are in a weak topological order (Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993): a block comes behind those
// that lead to it, and the blocks of a loop lie together, before those behind the loop. So the thread that has the smaller
// position is the one that the others must wait for, if they are to meet again (block.h).
#pragma once

#include "decoder.h"

namespace polder::ptx {

// `positions`: of labels, as indices of `decoded`.
void lay_out(std::vector<Decoded> decoded, const std::map<uint32_t, uint32_t>& positions, Function& made);

}  // namespace polder::ptx
