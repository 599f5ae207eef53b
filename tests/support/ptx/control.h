// Branches and ends, which the decoder and the layout of blocks add as well. A branch holds the distance to its target.
#pragma once

#include "thread.h"

namespace polder::ptx {

bool run_jump(Thread& t, const Instruction& i);
bool run_branch_if(Thread& t, const Instruction& i);
bool run_branch_unless(Thread& t, const Instruction& i);
bool run_return(Thread& t, const Instruction& i);

}  // namespace polder::ptx
