// Kernels for the fake libcuda: registers work-group functions, and makes the code that names them.
#pragma once

#include "fake_cuda.h"

#include <cstring>
#include <dlfcn.h>
#include <polder/driver.h>
#include <polder/ptx_abi.h>
#include <string>

namespace polder::fake_cuda {

// A function of the library that LD_LIBRARY_PATH names; null when that is a real one.
template <class Function>
Function find(const char* name) {
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

// The fake's records hold finished texts.
inline void print_records(std::span<const std::byte> records, driver::PrintText print, void* user) {
    for (size_t offset = 0; offset + sizeof(PtxPrintRecord) <= records.size();) {
        PtxPrintRecord record;
        std::memcpy(&record, records.data() + offset, sizeof record);
        if (record.bytes == 0)
            return;
        const auto* const text = reinterpret_cast<const char*>(records.data() + offset + sizeof record);
        print(user, text, std::strlen(text));
        offset += record.bytes;
    }
}

inline driver::TargetCode code_of(const driver::HostCode& code, driver::PrintRing print = nullptr) {
    static std::atomic<int> count{0};
    static const auto register_kernel = find<RegisterKernel>("fake_cuda_register_kernel");
    // Valid during Device::load, as long as the next one is not made on this thread.
    static thread_local std::string text;
    const std::string entry = "kernel_" + std::to_string(count++);
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry " + entry + "()\n{\n ret;\n}\n";
    const Kernel kernel{code.function, code.local_bytes, code.scratch_bytes_per_work_item};
    register_kernel(entry.c_str(), &kernel);
    driver::TargetCode made;
    made.code = text;
    made.entry = entry;
    made.arguments_size = 64;  // more than any of the tests' kernels has
    made.local_bytes = code.local_bytes;
    made.dynamic_local_bytes = code.local_bytes;
    made.print = print;
    return made;
}

} // namespace polder::fake_cuda
