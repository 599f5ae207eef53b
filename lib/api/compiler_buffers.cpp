// The memory of LLVM's tables. LLVM uses the operator new that is given an alignment, which the GNU C++ library implements by aligned_alloc.
// That is several times as slow as malloc, whose blocks have the alignment that nearly all tables need. Here, malloc is used where it
// suffices. Linked into libpolder.so alone, and only with LLVM's archives: LLVM's own definitions then stay in the archive.
#include <cstddef>
#include <cstdlib>

namespace llvm {

void report_bad_alloc_error(const char* reason, bool makes_report);

[[gnu::returns_nonnull]] void* allocate_buffer(size_t size, size_t alignment);
void* allocate_buffer(size_t size, size_t alignment) {
    const size_t whole = (size + alignment - 1) / alignment * alignment;  // aligned_alloc allows only multiples
    void* const memory =
        alignment <= alignof(std::max_align_t) ? std::malloc(size) : std::aligned_alloc(alignment, whole);
    if (memory == nullptr)
        report_bad_alloc_error("no memory for a table", true);
    return memory;
}

void deallocate_buffer(void* memory, size_t size, size_t alignment);
void deallocate_buffer(void* memory, size_t, size_t) { std::free(memory); }

}  // namespace llvm
