// The dispatch table through which the ICD loader calls, and the look-up of entry points by name.
#include "command_buffer.h"
#include "entry.h"

#include <runtime/platform.h>

#include <algorithm>
#include <string_view>

#define POLDER_EXPORT __attribute__((visibility("default")))

namespace polder::api {
namespace {

using Function = void (*)();

struct NamedFunction {
    std::string_view name;
    Function function;
};

#define POLDER_NAMED(name) {#name, reinterpret_cast<Function>(&name)},
#define POLDER_NOT_NAMED(name)
#define POLDER_OF_COMMAND_BUFFERS(name) {#name, reinterpret_cast<Function>(&command_buffer::name)},
const NamedFunction named_functions[] = {POLDER_ENTRY_POINTS(POLDER_NAMED, POLDER_NOT_NAMED) POLDER_EXTENSION_FUNCTIONS(
    POLDER_NAMED) POLDER_COMMAND_BUFFER_FUNCTIONS(POLDER_OF_COMMAND_BUFFERS)};

// The places of Direct3D functions are plain pointers in the loader's header on this platform.
template <class Place, class Entry>
Place dispatched(Entry* function) {
    if constexpr (std::is_same_v<Place, void*>)
        return reinterpret_cast<void*>(function);
    else
        return function;
}

#define POLDER_DISPATCHED(name) dispatched<decltype(cl_icd_dispatch::name)>(&::name),
// The place of OpenCL 3.1 is the last. Headers of 3.0 do not have it, but a loader of 3.1 calls through it.
struct DispatchTable {
    cl_icd_dispatch places = {POLDER_ENTRY_POINTS(POLDER_DISPATCHED, POLDER_DISPATCHED)};
    Function behind = reinterpret_cast<Function>(&clGetKernelSuggestedLocalWorkSize);
};

template <class Places>
void fill_last_place(Places& places) {
    if constexpr (requires { places.clGetKernelSuggestedLocalWorkSize; })
        places.clGetKernelSuggestedLocalWorkSize =
            dispatched<decltype(places.clGetKernelSuggestedLocalWorkSize)>(&clGetKernelSuggestedLocalWorkSize);
}

DispatchTable filled_table() {
    DispatchTable table;
    fill_last_place(table.places);
    return table;
}
DispatchTable dispatch_table = filled_table();  // may be initialized after publish_dispatch_table has run

// Every handle starts with the table; the first handles are the platform's and its devices'.
[[gnu::constructor]] void publish_dispatch_table() {
    // The address of the whole table: otherwise the compiler could remove members of which it sees no reader.
    runtime::icd_dispatch = &dispatch_table;
}

void* function_by_name(const char* name) {
    if (!name)
        return nullptr;
    const auto* found = std::ranges::find(named_functions, std::string_view{name}, &NamedFunction::name);
    return found == std::end(named_functions) ? nullptr : reinterpret_cast<void*>(found->function);
}

} // namespace
} // namespace polder::api

using namespace polder;
using namespace polder::api;

POLDER_EXPORT CL_API_ENTRY void* CL_API_CALL clGetExtensionFunctionAddress(const char* function_name) {
    return function_by_name(function_name);
}

CL_API_ENTRY void* CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                                        const char* function_name) {
    return from_handle<runtime::Platform>(platform) ? function_by_name(function_name) : nullptr;
}

POLDER_EXPORT CL_API_ENTRY cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num_entries, cl_platform_id* platforms,
                                                                     cl_uint* num_platforms) {
    return clGetPlatformIDs(num_entries, platforms, num_platforms);
}
