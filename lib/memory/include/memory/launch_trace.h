// Records launches in the trace (memory/trace.h). Any thread may call this; it never fails.
#pragma once

#include <memory/domain.h>
#include <memory/trace.h>

#include <span>

namespace polder::memory::trace {

// A launch in `space` that is complete at `done`; `text`: the kernel's name. Takes a few nanoseconds where the calling thread has recorded a
// launch with the same uses on the same queue a short time ago.
void record_launch(std::span<const Use> uses, driver::Timepoint done, SpaceId space, uint32_t text) noexcept;

}  // namespace polder::memory::trace
