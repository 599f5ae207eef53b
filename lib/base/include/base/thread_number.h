// thread_number: a small number for each thread, the lowest that no other thread has.
//
// For data that has several copies so that threads do not share cache lines. A thread uses the copy with the index `thread number modulo
// number of copies`, so threads share a copy only when there are more threads than copies. Any thread; after its first call, one load.
#pragma once

#include <cstdint>

namespace polder {

namespace thread_number_state {
// The number + 1; 0 before the first call.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local uint32_t number_plus_1 = 0;
[[gnu::cold]] uint32_t assign();  // also returns the number + 1
}  // namespace thread_number_state

[[nodiscard]] inline uint32_t thread_number() {
    const uint32_t known = thread_number_state::number_plus_1;
    return (known ? known : thread_number_state::assign()) - 1;
}

}  // namespace polder
