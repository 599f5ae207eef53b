// Times of events. Any thread.
#pragma once

#include "stream.h"

namespace torch_opencl {

// Milliseconds on the clock of the device from the completion of one event to that of another. Throws when one of them is not complete.
double milliseconds_between(const Event& first, const Event& second);

}  // namespace torch_opencl
