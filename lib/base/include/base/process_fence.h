// A fence on all threads of the process (membarrier(2)), for Dekker's handshakes in which one side is frequent and the other one rare.
//
// The frequent side writes, then reads, with only a compiler fence (std::atomic_signal_fence) in between. The rare side writes, calls
// fence_all_threads, then reads. So at least one of the two sides sees what the other one has written. Any thread.
#pragma once

namespace polder {

// False where the system refuses it: then the frequent side needs a fence of its own. The result never changes.
[[gnu::cold]] [[nodiscard]] bool may_fence_all_threads();
// Takes some microseconds.
[[gnu::cold]] void fence_all_threads();

}  // namespace polder
