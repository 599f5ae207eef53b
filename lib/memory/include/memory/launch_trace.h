// Records launches in the trace (memory/trace.h). Any thread may call this; it never fails.
#pragma once

#include <memory/domain.h>
#include <memory/trace.h>

#include <span>

namespace polder::memory::trace {

// Records a launch in `space` that is complete at `done`. `text` is the id of the kernel's name (record_text). Takes a few nanoseconds when
// the calling thread has recorded a launch with the same uses on the same queue shortly before.
void record_launch(std::span<const Use> uses, driver::Timepoint done, SpaceId space, uint32_t text) noexcept;

}  // namespace polder::memory::trace
