// The exact forms of instructions that have an approximate one too.
#pragma once

#include "decoder.h"

namespace polder::ptx {

void decode_exact_div(Line& line);  // of integers, too
void decode_exact_rcp(Line& line);
void decode_exact_sqrt(Line& line);

}  // namespace polder::ptx
