// Kernel: a kernel of a built program with its arguments. Arguments are copy-on-write: enqueueing a launch takes
// a reference to the current set, so freezing them costs one count.
// clSetKernelArg on one kernel from several threads is the application's to avoid; all else is safe.
#pragma once

#include <runtime/mem_object.h>
#include <runtime/program.h>
#include <runtime/queue.h>

namespace polder::runtime {

// One set of argument values, immutable once shared.
struct KernelArguments final : RefCounted {
    std::vector<std::byte> packed;          // as kernel_abi.h wants it; addresses are filled in at launch
    std::vector<Ref<MemObject>> buffers;    // per argument; null: not a buffer, or a null buffer
    std::vector<const void*> svm_pointers;  // per argument
    std::vector<uint64_t> local_bytes;      // per argument: size of a __local argument
    std::vector<bool> is_set;
    std::vector<Ref<Object>> samplers;
};

} // namespace polder::runtime
