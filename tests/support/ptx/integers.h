// The instructions whose name is also that of an instruction of floats.
#pragma once

#include "decoder.h"

namespace polder::ptx {

void decode_integer_add(Line& line);
void decode_integer_sub(Line& line);
void decode_integer_mul(Line& line);
void decode_integer_mad(Line& line);
void decode_integer_div(Line& line);
void decode_integer_abs(Line& line);
void decode_integer_neg(Line& line);
void decode_integer_min(Line& line);
void decode_integer_max(Line& line);

}  // namespace polder::ptx
