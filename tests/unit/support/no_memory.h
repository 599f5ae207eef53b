// A thread whose allocations fail, for tests of what must work without. Link no_memory.cpp.
#pragma once

namespace polder::test {

// While set, `operator new` throws std::bad_alloc on this thread.
extern thread_local bool no_memory;

} // namespace polder::test
